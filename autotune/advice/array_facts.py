"""What the checks look at: the array, what lies on it, and what was measured before."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autotune.system import layers
from autotune.system.array import PARITY, Array, Media, Member
from autotune.system.blockdev import SECTOR, number, whole_disk
from autotune.system.programs import UnseenError
from autotune.system.stack import Mount, Stack

FLASH_BLOCK_BYTES = 4096
"""Flash has pages of 4 KiB or more, whatever the disk says of its blocks."""
_ONE_TO_ONE = {"linear", "crypt"}
"""The targets that keep the order of a filesystem's blocks."""


@dataclass(frozen=True)
class ArrayFacts:
    """`speeds_kib_s` are the members' sequential read speeds by name, empty if they were not
    measured; `unmeasured` says why. `proven` are the knobs that a profile in force sets."""

    array: Array
    stack: Stack
    speeds_kib_s: Mapping[str, int] = field(default_factory=dict)
    unmeasured: str = ""
    proven: frozenset[str] = frozenset()

    @property
    def members(self) -> tuple[Member, ...]:
        """Those that hold data: no spare, journal, or member that fails or is being rebuilt."""
        return tuple(m for m in self.array.members if "in_sync" in m.state)

    @property
    def stripe_bytes(self) -> int:
        """The data of a stripe with parity; 0 at other levels. UnseenError while it changes."""
        array = self.array
        if array.level not in PARITY:
            return 0
        if array.reshape_position != "none":
            raise UnseenError("the array is being reshaped")
        return array.chunk_bytes * (array.raid_disks - PARITY[array.level])

    @property
    def grain(self) -> tuple[int, str]:
        """What a start on the array should be a multiple of, in bytes, and what that is."""
        if stripe := self.stripe_bytes:
            return stripe, "stripe"
        if self.array.level in ("raid0", "raid10"):
            return self.array.chunk_bytes, "chunk"
        blocks = [block_bytes(m.disk, m.media, self.array.root) for m in self.members]
        return max(blocks, default=SECTOR), "disks' block"

    def entry(self, name: str) -> Path:
        """The folder of a block device in sysfs."""
        return self.array.root / "sys/class/block" / name

    def device(self, name: str) -> str:
        """The device file of a kernel name: "/dev/mapper/vg0-home" for "dm-3"."""
        if (self.entry(name) / "dm").is_dir():
            return f"/dev/mapper/{layers.label(name, self.array.root)}"
        return f"/dev/{name.replace('!', '/')}"

    def filesystems(self, kinds: Collection[str]) -> Iterator[Mount]:
        """The mounted filesystems whose blocks lie on the array in their order, each once: where
        the whole of it is seen, if it is.

        Raise UnseenError if what lies below one cannot be seen.
        """
        array, seen = self.array, set()
        for mount in sorted(self.stack.mounts, key=lambda mount: mount.root != "/"):
            if mount.fstype not in kinds or mount.device in seen:
                continue
            seen.add(mount.device)
            between = layers.below(mount.device, array.root, stop=(array.name,))
            if layers.elsewhere(between, array.name, array.root) is None and all(
                self._is_one_to_one(name) for name in between
            ):
                yield mount

    def _is_one_to_one(self, name: str) -> bool:
        if (self.entry(name) / "partition").exists():
            return True
        kinds = layers.targets(name, self.array.root)
        return bool(kinds) and set(kinds) <= _ONE_TO_ONE


def block_bytes(disk: str, media: Media, root: Path) -> int:
    """The block that a disk writes as a whole."""
    queue = root / "sys/block" / whole_disk(disk, root) / "queue"
    physical = number(queue / "physical_block_size") or SECTOR
    return physical if media is Media.HDD else max(physical, FLASH_BLOCK_BYTES)


def start_bytes(entry: Path) -> int:
    """Where a partition begins on its device; 0 for what is none."""
    return number(entry / "start") * SECTOR


def show_kib(count_bytes: int) -> str:
    """Exact, as commands take it: `31.5 KiB`, `192 KiB`."""
    return f"{count_bytes / 1024:.15g} KiB"


def listed(names: Collection[str]) -> str:
    """`vda`, `vda and vdb`, `vda, vdb and vdc`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
