"""The block devices below a filesystem, and what device-mapper makes of a write to them.

`dmsetup` says what a device-mapper device does; it runs as a process of its own, which can be left
alone if the kernel does not answer. It never gets to flush anything (--noflush).
"""

import contextlib
import os
import stat
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import UsageError
from autotune.system import sysfs
from autotune.system.blockdev import kernel_name
from autotune.system.mountinfo import mounted
from autotune.system.programs import UnseenError, find

TIMEOUT_S = 5.0


@dataclass(frozen=True)
class Pool:
    """How full a thin pool is: shares of its data and of its metadata, and what is free."""

    data: float
    metadata: float
    free_bytes: int
    sound: bool
    """It takes writes, and nothing in it is to be repaired."""


def below(name: str, root: Path, stop: Collection[str] = ()) -> tuple[str, ...]:
    """The devices that a device lies on, itself first, each once; not those in `stop`, nor what
    these lie on."""
    found: list[str] = []
    waiting = [name, *of_one_btrfs(name, root)]
    while waiting:
        name = waiting.pop(0)
        if name not in found and name not in stop:
            found.append(name)
            waiting += _directly_below(name, root)
    return tuple(found)


def elsewhere(names: Collection[str], array: str, root: Path) -> str | None:
    """The first of these devices that does not lie on the array, nor any part of it."""
    return next((name for name in names if not lies_on(name, array, root)), None)


def lies_on(name: str, array: str, root: Path) -> bool:
    """Whether a device is the array, or any part of it is there."""
    return name == array or any(lies_on(n, array, root) for n in _directly_below(name, root))


def _entry(name: str, root: Path) -> Path:
    return root / "sys/class/block" / name


def _directly_below(name: str, root: Path) -> list[str]:
    entry = _entry(name, root)
    if (entry / "partition").exists():
        return [entry.resolve().parent.name]
    slaves = sorted(path.name for path in (entry / "slaves").glob("*"))
    holding = backing_file(name, root)
    if not slaves and holding is not None:
        slaves = _holding(holding, root)
    return slaves


def backing_file(name: str, root: Path) -> Path | None:
    """The file that a loop device keeps its blocks in."""
    text = sysfs.read_or(_entry(name, root) / "loop/backing_file", "")
    return Path(text) if text.startswith("/") else None


def _holding(file: Path, root: Path) -> list[str]:
    """What a file's blocks are on: its filesystem's devices, where that has some; of a device file,
    the device."""
    try:
        status = file.stat()
    except OSError:
        return []
    is_device = stat.S_ISBLK(status.st_mode)
    found = status.st_rdev if is_device else status.st_dev
    number = f"{os.major(found)}:{os.minor(found)}"
    device = root / "sys/dev/block" / number
    if device.exists():
        return [device.resolve().name]
    return [] if is_device else _holding_mount(file, root)


def _holding_mount(file: Path, root: Path) -> list[str]:
    """The same where the filesystem's number is no device's: a btrfs has one for each subvolume,
    which is no mount's either, and an overlay keeps its files in a folder of another filesystem."""
    above = [each for each in mounted(root / "proc/self") if file.is_relative_to(each.place)]
    if not above:
        return []
    mount = max(reversed(above), key=lambda each: len(each.place))
    with contextlib.suppress(UsageError):
        name = kernel_name(mount.source, root)
        return of_one_btrfs(name, root) or [name]
    uppers = (o.partition("=")[2] for o in mount.options if o.startswith("upperdir="))
    return [name for upper in uppers for name in _holding(Path(upper), root)]


def of_one_btrfs(name: str, root: Path) -> list[str]:
    """All devices of the btrfs that one of them is part of."""
    for devices in (root / "sys/fs/btrfs").glob("*/devices"):
        if (devices / name).exists():
            return sorted(path.name for path in devices.iterdir())
    return []


def label(name: str, root: Path) -> str:
    """What people call a device: "vg0-home" for "dm-3"."""
    return sysfs.read_or(_entry(name, root) / "dm/name", name)


def targets(name: str, root: Path) -> tuple[str, ...]:
    """The kinds of target that a device-mapper device is made of; none for another device.

    Raise UnseenError if that cannot be seen.
    """
    if not (_entry(name, root) / "dm").is_dir():
        return ()
    return tuple(dict.fromkeys(words[2] for words in table(name, root)))


def table(name: str, root: Path) -> list[list[str]]:
    """The lines of a device-mapper device's table, in words: its first sector, its sectors, the
    kind of target, and what that takes; without keys. Raise UnseenError if it cannot be seen."""
    lines = [line.split() for line in _wait(_start("table", name, root)).splitlines()]
    found = [words for words in lines if len(words) > 2]
    if not found:
        raise UnseenError(f"device-mapper shows no table of {label(name, root)}")
    return found


def pool(name: str, root: Path) -> Pool:
    """How full a thin pool is now. Raise UnseenError if that cannot be seen."""
    words = _wait(_start("table", name, root)).split()
    if len(words) < 6 or not words[5].isdigit():
        # It is not activated yet, or is just being taken down.
        raise UnseenError(f"device-mapper shows no table of {label(name, root)}")
    return parse_pool(_wait(_start("status", name, root)), int(words[5]))


def parse_pool(status: str, block_sectors: int) -> Pool:
    """What a line of status says (kernel admin-guide/device-mapper/thin-provisioning.rst)."""
    words = status.split()
    try:
        (meta, metas), (data, datas) = (map(int, words[i].split("/")) for i in (4, 5))
    except (IndexError, ValueError):
        # "Fail": the pool has given up.
        return Pool(1.0, 1.0, 0, sound=False)
    sound = "rw" in words[6:] and "needs_check" not in words[6:]
    return Pool(data / datas, meta / metas, (datas - data) * block_sectors * 512, sound)


class Asking:
    """A question about a pool whose answer may take its time, or never come."""

    def __init__(self, name: str, root: Path) -> None:
        self._process = _start("status", name, root)
        self._until = time.monotonic() + TIMEOUT_S

    def answer(self) -> Pool | None:
        """The answer once it is there. Raise UnseenError if there will be none."""
        if self._process.poll() is None:
            if time.monotonic() > self._until:
                self._process.kill()
                raise UnseenError("it does not answer")
            return None
        # What is free is nobody's question here.
        return parse_pool(_wait(self._process), 0)


def _start(what: str, name: str, root: Path) -> "subprocess.Popen[str]":
    major, minor = sysfs.read_or(_entry(name, root) / "dev", "0:0").split(":")
    dmsetup = find("dmsetup")
    if dmsetup is None:
        raise UnseenError("dmsetup is not installed (`apt install dmsetup`)")
    try:
        return subprocess.Popen(
            (dmsetup, what, "--noflush", "-j", major, "-m", minor),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError as error:
        raise UnseenError(f"dmsetup cannot be started ({error.strerror})") from None


def _wait(process: "subprocess.Popen[str]") -> str:
    try:
        said, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise UnseenError(f"dmsetup did not answer within {TIMEOUT_S:.0f} s") from None
    if process.returncode:
        raise UnseenError("dmsetup failed; it needs root")
    return said
