"""What an md array is, read from sysfs: identity, members, state. Changes nothing.

Files and their meaning: kernel Documentation/admin-guide/md.rst; layout seen on 6.1.176.
"""

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import RefusalError, UsageError
from autotune.system import sysfs
from autotune.system.blockdev import (
    SECTOR,
    Media,
    hardware,
    kernel_name,
    leaves,
    md_uuid,
    media_of,
    number,
    uuid_words,
    what_is,
    whole_disk,
)
from autotune.system.sysfs import Write

__all__ = [
    "PARITY",
    "REDUNDANT",
    "Array",
    "Media",
    "Member",
    "find_array",
    "find_uuid",
    "list_arrays",
    "read_array",
]

REDUNDANT = ("raid1", "raid4", "raid5", "raid6", "raid10")
PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}
"""The members' worth of parity in a stripe, by level: so many may fail."""


@dataclass(frozen=True)
class Member:
    """A block device in the array.

    `name` is the member itself ("sda1"), `disk` the whole device whose queue serves it ("sda");
    that queue may serve other arrays too. `leaves` are the physical disks below (several under a
    dm device). `nr_requests` is the queue's length when the array was looked at, and `scheduler`
    the stores that bring its scheduler back, and then what that was set to: a switch resets them.
    """

    name: str
    disk: str
    leaves: tuple[str, ...]
    state: str
    media: Media
    size_bytes: int
    nr_requests: int | None = None
    scheduler: tuple[Write, ...] = ()
    hardware: str = ""
    """What tells its disk from others whatever it is called, if it says so itself."""


@dataclass(frozen=True)
class Array:
    """An active md array, as it was when it was looked at.

    `uuid` is 32 hex digits, in mdadm's order, or "" for an array without a superblock. `root` is
    "/" but in tests. `reshape_position` is "none" or a sector.
    """

    name: str
    uuid: str
    level: str
    raid_disks: int
    chunk_bytes: int
    size_bytes: int
    metadata: str
    members: tuple[Member, ...]
    degraded: int
    array_state: str
    sync_action: str
    reshape_position: str
    read_only: bool
    kernel: str
    page_bytes: int
    root: Path = Path("/")
    identity: str = ""
    """Tells it from what has its name later, itself started anew included (`sysfs.identity`)."""

    @property
    def device(self) -> str:
        """The device file: "/dev/md0"."""
        return f"/dev/{self.name.replace('!', '/')}"

    @property
    def block(self) -> Path:
        """The array's folder in sysfs."""
        return self.root / "sys/block" / self.name

    @property
    def md(self) -> Path:
        return self.block / "md"

    @property
    def queue(self) -> Path:
        return self.block / "queue"

    @property
    def disks(self) -> tuple[str, ...]:
        """The whole disks under the members, each once, in the members' order. Not that of the
        write journal alone, which is another kind of disk, and often the system's."""
        return tuple(dict.fromkeys(m.disk for m in self._at_work))

    @property
    def has_journal(self) -> bool:
        """Whether a device of its own has its write journal."""
        return any("journal" in member.state.split(",") for member in self.members)

    @property
    def _at_work(self) -> tuple[Member, ...]:
        return tuple(m for m in self.members if not {"faulty", "journal"} & {*m.state.split(",")})

    @property
    def leaves(self) -> frozenset[str]:
        """The physical disks under the members."""
        return frozenset(leaf for member in self.members for leaf in member.leaves)

    @property
    def media(self) -> Media:
        """The slowest member's: it sets the pace. Of a disk that is gone nothing is known."""
        order = list(Media)
        media = (m.media for m in self._at_work)
        return min(media, key=order.index, default=Media.HDD)

    @property
    def redundant(self) -> bool:
        return self.level in REDUNDANT

    @property
    def mdadm_uuid(self) -> str:
        """The UUID as mdadm writes it."""
        return uuid_words(self.uuid)

    @property
    def kernel_version(self) -> tuple[int, int]:
        """(6, 1) of "6.1.176-foo"."""
        major, minor = [*self.kernel.split("-")[0].split("."), "0"][:2]
        return int(major), int(minor)

    @property
    def fingerprint(self) -> str:
        """Changes when measurements of this array no longer speak for it."""
        members = ",".join(sorted(f"{m.hardware}:{m.media}:{m.size_bytes}" for m in self.members))
        return "|".join([self.uuid, self.level, str(self.chunk_bytes), members, self.kernel])

    @property
    def has_gained_a_member(self) -> bool:
        """Whether a disk was added since this was read."""
        names = {path.name.removeprefix("dev-") for path in self.md.glob("dev-*")}
        return not names <= {member.name for member in self.members}

    @property
    def lost_member(self) -> str | None:
        """The name of a member that was taken out since this was read, such as a spare."""
        names = (each.name for each in self.members if "faulty" not in each.state)
        return next((name for name in names if not (self.md / f"dev-{name}").exists()), None)

    def now(self) -> "Array":
        """The same array, looked at again. RefusalError if it is not running any more under this
        name."""
        now = read_array(self.name, self.root)
        if self.uuid and not now.uuid:
            raise RefusalError(
                f"The UUID of {self.device} could be read before and cannot be now, so it cannot "
                "be told from others; see whether `mdadm --detail` answers."
            )
        if now.uuid != self.uuid:
            raise RefusalError(
                f"Another array is called {self.device} by now; name the one that is meant."
            )
        return now


def find_array(device: str | Path, root: Path = Path("/")) -> Array:
    """The array behind a device file ("/dev/md0", "/dev/md/home") or kernel name ("md0").

    Raise UsageError if it is not an md array, RefusalError if the array is not running.
    """
    name = kernel_name(str(device), root)
    partition = (root / "sys/class/block" / name / "partition").exists()
    if (root / "sys/block" / name / "md").is_dir() or (name.startswith("md") and not partition):
        return read_array(name, root)
    raise UsageError(f"{device} is not an md array but {what_is(name, root)}.")


def find_uuid(text: str, root: Path = Path("/")) -> str:
    """The 32 hex digits of a UUID, as mdadm, udev or blkid write it, or of the array behind a
    device file. UsageError if it is neither, or the array has none."""
    digits = re.sub("[:-]", "", text.lower())
    if re.fullmatch("[0-9a-f]{32}", digits):
        return digits
    array = find_array(text, root)
    if not array.uuid:
        raise UsageError(f"{array.device} has no UUID, so it cannot be recognised again.")
    return array.uuid


def list_arrays(root: Path = Path("/")) -> list[Array]:
    """All active arrays, by name."""
    arrays = []
    for folder in sorted((root / "sys/block").glob("*/md")):
        # One may be stopped while it is looked at.
        with contextlib.suppress(RefusalError):
            arrays.append(read_array(folder.parent.name, root))
    return arrays


def read_array(name: str, root: Path = Path("/")) -> Array:
    """The active array of this kernel name. Raise RefusalError if it is not running."""
    block = root / "sys/block" / name
    md = block / "md"
    state = sysfs.read_or(md / "array_state", "clear")
    if state in ("clear", "inactive"):
        raise RefusalError(
            f"The array /dev/{name} is not running (it is {state}); start it with "
            f"`mdadm --run /dev/{name}` or `mdadm --assemble --scan`."
        )
    metadata = sysfs.read_or(md / "metadata_version", "none")
    level = sysfs.read_or(md / "level", "unknown")
    return Array(
        name=name,
        uuid=md_uuid(name, metadata, root),
        level=level,
        raid_disks=number(md / "raid_disks"),
        chunk_bytes=number(md / "chunk_size"),
        size_bytes=number(block / "size") * SECTOR,
        metadata=metadata,
        members=_members(md, root),
        degraded=number(md / "degraded"),
        array_state=state,
        sync_action=sysfs.read_or(md / "sync_action", "idle"),
        reshape_position=sysfs.read_or(md / "reshape_position", "none"),
        read_only=state == "readonly" or number(block / "ro") != 0,
        kernel=sysfs.read_or(root / "proc/sys/kernel/osrelease", "0.0"),
        page_bytes=os.sysconf("SC_PAGE_SIZE"),
        root=root,
        identity=sysfs.identity(block),
    )


def lacks_journal(md: Path) -> bool:
    """Whether an array's write journal has failed or is gone. md then refuses every write, and a
    check comes to its end without reading (raid5.c, r5l_log_disk_error), though none is missing."""
    if sysfs.read_or(md / "consistency_policy", "") != "journal":
        return False
    states = [sysfs.read_or(file, "").split(",") for file in md.glob("dev-*/state")]
    return not any("journal" in words and "faulty" not in words for words in states)


def _members(md: Path, root: Path) -> tuple[Member, ...]:
    def slot(folder: Path) -> tuple[int, str]:
        text = sysfs.read_or(folder / "slot", "none")
        return (int(text) if text.isdigit() else 1 << 16, folder.name)

    members = []
    for folder in sorted(md.glob("dev-*"), key=slot):
        name = folder.name.removeprefix("dev-")
        disk = whole_disk(name, root)
        under = leaves(name, root)
        queue = root / "sys/block" / disk / "queue"
        length = sysfs.read_or(queue / "nr_requests", "")
        members.append(
            Member(
                name=name,
                disk=disk,
                leaves=under,
                state=sysfs.read_or(folder / "state", "unknown"),
                media=min((media_of(leaf, root) for leaf in under), key=list(Media).index),
                size_bytes=number(root / "sys/class/block" / name / "size") * SECTOR,
                nr_requests=int(length) if length.isdigit() else None,
                scheduler=_scheduler(queue),
                hardware=hardware(disk, root),
            )
        )
    return tuple(members)


def _scheduler(queue: Path) -> tuple[Write, ...]:
    own = sorted((queue / "iosched").glob("*"))
    # Since Linux 7 the queue has what was mq-deadline's, and refuses to store it without one.
    found = []
    for file in (queue / "scheduler", *own, *([queue / "async_depth"] if own else [])):
        # The kernel has no value, or the owner has chosen another scheduler meanwhile.
        with contextlib.suppress(OSError):
            if text := sysfs.original(file):
                found.append(Write(file, text))
    return tuple(found)
