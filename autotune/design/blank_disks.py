"""The disks of a design: blank ones, named twice, and looked at again before each write."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.preflight import raw_device
from autotune.system import sysfs
from autotune.system.blockdev import SECTOR, Media, hardware, leaves, media_of, number, what_is
from autotune.system.raw_space import against_writing
from autotune.system.signature import signature
from autotune.untrusted import plain


@dataclass(frozen=True)
class Disk:
    """A whole disk as it was when it was first looked at. `given` is what the user called it;
    `identity` and `hardware` tell it from another one that has its name later."""

    given: str
    name: str
    size_bytes: int
    media: Media
    identity: str
    hardware: str
    root: Path = Path("/")

    @property
    def device(self) -> str:
        return f"/dev/{self.name.replace('!', '/')}"

    @property
    def leaves(self) -> frozenset[str]:
        return frozenset(leaves(self.name, self.root))

    def look_again(self, inside: bool = True) -> None:
        """Raise RefusalError if the name has gone to another disk, or anything at all is, or may
        be, on this one by now. `inside`: signatures are looked for, too."""
        try:
            same = _disk(self.given) == self
        except UsageError:
            same = False
        if not same:
            raise RefusalError(
                f"{self.device} is gone, or another disk by now, so it is not written to; look at "
                "what is plugged in, and start again."
            )
        if number(self.root / "sys/block" / self.name / "ro"):
            raise RefusalError(f"{self.device} is not written to: it is read-only.")
        found = raw_device.against(self) or (signature(self.device) if inside else None)
        if found:
            raise RefusalError(f"{self.device} is not written to: {found}.")

    @contextmanager
    def held(self, mode: int = os.O_WRONLY | os.O_DIRECT) -> Iterator[int]:
        """A descriptor, for large writes past the page cache if nothing else is asked for, while
        nobody can mount or hold the disk. Raise RefusalError if it is another one, or somebody was
        faster; OSError if it cannot be opened."""
        descriptor = os.open(self.device, mode | os.O_EXCL | os.O_CLOEXEC)
        try:
            found = signature(self.device)
            if self.identity.split()[-1] != _numbers(os.fstat(descriptor)):
                found = "it is another disk by now"
            if found:
                raise RefusalError(f"{self.device} is not written to: {found}.")
            yield descriptor
        finally:
            os.close(descriptor)


def look_at_each_again(disks: Sequence[Disk]) -> None:
    """Raise RefusalError as `look_again`, or if what they lie on is not enough for all of them."""
    for disk in disks:
        disk.look_again()
    if why := against_writing([disk.name for disk in disks], disks[0].root):
        raise RefusalError(f"The disks are not written to: {why}.")


def look_at_all_again(disks: Sequence[Disk]) -> None:
    """The last look before mdadm writes: as `look_again`, with what is on them read while all are
    held, so that none can change while the others are looked at.

    mdadm has to hold them itself, so they are let go at the end.
    """
    for disk in disks:
        disk.look_again(inside=False)
    with ExitStack() as held:
        for disk in disks:
            try:
                # Only for reading: when a writer closes it, udev looks at a disk.
                held.enter_context(disk.held(os.O_RDONLY))
            except OSError as error:
                raise RefusalError(
                    f"{disk.device} is not written to: somebody has just taken it "
                    f"({error.strerror})."
                ) from None


def find_disks(given: Sequence[str], named_again: Sequence[str]) -> tuple[Disk, ...]:
    """The disks that are named, each of them twice.

    Raise UsageError if one is no whole disk, is missing on one side, or comes more than once. One
    disk by two paths is not known: virtual disks may all have the same serial number. mdadm does
    not make an array of it.
    """
    disks = tuple(_disk(name) for name in given)
    again = {_disk(name).name for name in named_again}
    for position, disk in enumerate(disks):
        if disk.name in (other.name for other in disks[:position]):
            raise UsageError(f"{disk.device} is named more than once; name each disk once.")
        if disk.name not in again:
            raise UsageError(
                f"--destructive does not name {disk.device}; name it there too if everything on it "
                "may be lost."
            )
    if extra := again - {disk.name for disk in disks}:
        raise UsageError(
            f"--destructive names /dev/{min(extra)}, which is not among the disks; name it as "
            "one of them, too, or leave it out."
        )
    if len(disks) < 2:
        raise UsageError("An array needs two disks or more; name all that it is to be made of.")
    return disks


def _disk(given: str) -> Disk:
    path = Path(given)
    try:
        status = path.stat()
    except OSError as error:
        raise UsageError(f"{plain(given)} cannot be looked at: {error.strerror}.") from None
    if not stat.S_ISBLK(status.st_mode):
        raise UsageError(f"{plain(given)} is not a block device; name disks, such as /dev/sdb.")
    block = Path("/sys/dev/block", _numbers(status)).resolve()
    name = block.name
    if (block / "partition").exists() or any((block / kind).is_dir() for kind in ("md", "dm")):
        raise UsageError(
            f"{plain(given)} is no whole disk but {_kind(name)}; name disks that are empty."
        )
    return Disk(
        given,
        name,
        number(block / "size") * SECTOR,
        media_of(name, Path("/")),
        f"{sysfs.identity(block)} {_numbers(status)}",
        hardware(name, Path("/")),
    )


def _numbers(status: os.stat_result) -> str:
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def _kind(name: str) -> str:
    root = Path("/")
    return "an md array" if (root / "sys/block" / name / "md").is_dir() else what_is(name, root)
