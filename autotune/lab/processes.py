"""The lab's processes on the host, and the keeper that ends them."""

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from autotune.errors import RefusalError
from autotune.lab import keeper
from autotune.quantities import show_bytes

PACKAGES = {
    "linux.uml": "user-mode-linux",
    "nbdkit": "nbdkit",
    "qemu-storage-daemon": "qemu-system-common",
    "cc": "gcc",
    "mdadm": "mdadm",
    "mkfs.ext4": "e2fsprogs",
    "mkfs.xfs": "xfsprogs",
}
"""The Debian package of each program that a lab may need."""

FILES = 4096
"""Files of the host that the lab's kernel may have open: a run has 2400."""
_ONCE_TOLD = ("sh", "-c", 'read -r _ && exec "$@" </dev/null', "sh")
"""A program that starts only when it is let, and never if whoever would do that is killed."""
_TEMPORARY = ("TMPDIR", "TMP", "TEMP")

_PLUGIN_HEADER = Path("/usr/include/nbdkit-plugin.h")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def require(programs: Sequence[str]) -> None:
    """Raise RefusalError, which names the packages to install, unless all programs are here."""
    missing = [PACKAGES[name] for name in programs if not shutil.which(name, path=SYSTEM_PATH)]
    if "cc" in programs and not _PLUGIN_HEADER.exists():
        missing.append("nbdkit-plugin-dev")
    if missing:
        raise RefusalError(
            "The lab needs programs that are not installed; install them with "
            f"`apt-get install {' '.join(missing)}`."
        )


def require_memory(needed_bytes: int, meminfo: Path = Path("/proc/meminfo")) -> None:
    """Raise RefusalError unless so much memory is available. Else the kernel would kill a process,
    of the lab or any other."""
    lines = dict(line.split(":") for line in meminfo.read_text().splitlines())
    available_bytes = int(lines["MemAvailable"].split()[0]) * 1024
    if needed_bytes > available_bytes:
        raise RefusalError(
            f"The lab keeps its disks in memory: this scenario needs {show_bytes(needed_bytes)}, "
            f"and {show_bytes(available_bytes)} are available; free some, or make a scenario of "
            "your own with smaller disks (size_mib)."
        )


def allow_many_files() -> None:
    """Let the lab's processes open as many files as this user may. Raise RefusalError if that is
    too few: the kernel keeps each file of the host open that it has read, and most systems allow
    a process 1024 unless it asks for more."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most != resource.RLIM_INFINITY and most < FILES:
        raise RefusalError(
            f"The lab needs to open {FILES} files, and this user may open {most}; allow more "
            "(`ulimit -Hn`, or nofile in /etc/security/limits.conf)."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def require_usable_folder(folder: Path) -> None:
    """Raise RefusalError if the lab's files cannot be in a folder, which it has programs in."""
    bare = os.statvfs(folder).f_flag & os.ST_NOEXEC
    if bare or any(letter.isspace() for letter in str(folder)):
        why = "allows no programs (noexec)" if bare else "has a space in its name"
        raise RefusalError(
            f"The lab cannot keep its files in {folder}, which {why}; set TMPDIR to another folder."
        )


def _environment() -> dict[str, str]:
    # Without a TMPDIR, the kernel keeps the guest's memory in /dev/shm, not in a file on disk.
    kept = {name: value for name, value in os.environ.items() if name not in _TEMPORARY}
    return {**kept, "PATH": SYSTEM_PATH}


class Processes:
    """A folder and processes that all vanish at the end, even if this process is killed."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="autotune-lab-"))
        self._children: list[subprocess.Popen[bytes]] = []
        self._keeper = subprocess.Popen(
            # Isolated and without site packages, it starts in 20 ms.
            [sys.executable, "-I", "-S", keeper.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            process_group=0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._keeper.communicate()
        for child in self._children:
            child.wait()

    def start(self, command: Sequence[str], log: str, pass_fds: Sequence[int] = ()) -> None:
        """Start a program in the folder, its output appended to the file `log` there."""
        with (self.folder / log).open("ab") as file:
            child = subprocess.Popen(
                (*_ONCE_TOLD, *command),
                cwd=self.folder,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                pass_fds=pass_fds,
                process_group=0,
            )
        self._children.append(child)
        assert self._keeper.stdin
        self._keeper.stdin.write(b"%d\n" % child.pid)
        self._keeper.stdin.flush()
        # Killed before this, it would leave what its keeper does not know of.
        assert child.stdin
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(b"\n")
            child.stdin.close()

    def all_run(self) -> bool:
        """Whether every program that was started still runs."""
        return all(child.poll() is None for child in self._children)
