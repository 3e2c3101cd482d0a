"""Who holds a lock on a file. Light."""

import contextlib
import os
from pathlib import Path

from autotune.system import inode, sysfs
from autotune.system.open_files import open_files
from autotune.system.process import real_uid, stat_words

PROC = Path("/proc")
MOST_LETTERS = 100
GUARDIAN = "autotune.safety.guardian"


def holder(descriptor: int) -> str:
    """The process that keeps others from a flock on this open file, in words."""
    status = os.fstat(descriptor)
    lockers = [pid for pid in _lockers(status) if _command(pid)]
    # The one that took a lock may be dead, its child having inherited it.
    pids = [pid for pid in lockers if not _ended(pid)] or _openers(status) or lockers
    # It puts everything back, so nobody is told to stop it.
    pids = [pid for pid in pids if GUARDIAN not in _words(pid)] or pids
    names = [f"process {pid} ({_command(pid)})" for pid in pids]
    return " and ".join(names) or "a process that is not seen from here, as in another container"


def _lockers(status: os.stat_result) -> list[int]:
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    pids = []
    for line in (PROC / "locks").read_text().splitlines():
        # One that waits has an arrow in the second place.
        words = line.split()
        if words[1] == "FLOCK" and words[5] == device:
            pids.append(int(words[4]))
    return sorted(set(pids) - {os.getpid()})


def _openers(status: os.stat_result) -> list[int]:
    return [
        pid
        for pid, files in open_files()
        if pid != os.getpid() and any(_is_same(file, status) for file in files or ())
    ]


def _is_same(file: Path, status: os.stat_result) -> bool:
    with contextlib.suppress(OSError):
        found = inode.known(file)
        return (found.device, found.number) == (status.st_dev, status.st_ino)
    return False


def _words(pid: int) -> list[str]:
    """A process's command line; empty if there is no such process."""
    if real_uid(PROC / str(pid)) != os.getuid():
        # Nobody else's process has a lock of ours, and its words may be kept from whoever asks.
        return []
    return sysfs.read_or(PROC / str(pid) / "cmdline", "").split("\0")


def _command(pid: int) -> str:
    """A process's command line, cut short; "" if there is no such process."""
    words = _words(pid)
    if not words:
        return ""
    without = "killed already, it waits for a disk" if _ended(pid) else "a kernel thread"
    text = " ".join(words).strip() or without
    shown = "".join(c if c.isprintable() else "?" for c in text)
    return shown if len(shown) <= MOST_LETTERS else shown[: MOST_LETTERS - 1] + "…"


def _ended(pid: int) -> bool:
    """Whether a process is over, but for threads that the kernel keeps."""
    return stat_words(PROC / str(pid))[:1] in (["Z"], ["X"])
