"""Where a design works: the disks, and the slice of each."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.design.blank_disks import Disk
from autotune.errors import RefusalError
from autotune.system import sysfs
from autotune.system.blockdev import Media, uuid_words

MIB = 1 << 20
OFFSET_BYTES = 16 * MIB
"""Where a slice begins on its disk: behind the superblock, the bitmap and a PPL, and the same for
every shape, whatever mdadm would choose for each."""
TAIL_BYTES = MIB
"""Left alone at the end, where older superblocks would be."""
LARGEST_BYTES = {Media.HDD: 8192 * MIB, Media.SSD: 16384 * MIB, Media.NVME: 65536 * MIB}
"""Twice what a disk gives in a phase, since copies halve the array: what would be read once more
would come from memory."""
FILLED_PER_S = {Media.HDD: 150e6, Media.SSD: 400e6, Media.NVME: 1.5e9}
"""Bytes of each disk, as long as nothing better is known."""
LEAST_BYTES = 64 * MIB
STEP_BYTES = 4 * MIB
"""A multiple of every chunk."""
NAME = "autotune-design"
HIGHEST = 127
"""The number in the last name that mdadm gives."""


@dataclass(frozen=True)
class Workspace:
    """The disks, the slice of each, the UUID of all arrays that will be made there, one after the
    other, and a name that was free for them."""

    disks: tuple[Disk, ...]
    uuid: str
    name: str
    slice_bytes: int

    @property
    def mdadm_uuid(self) -> str:
        """As mdadm writes it."""
        return uuid_words(self.uuid)

    @property
    def hardware(self) -> dict[str, str]:
        """What each disk says of itself, by its kernel name."""
        return {disk.name: disk.hardware for disk in self.disks}

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    @property
    def leaves(self) -> frozenset[str]:
        return frozenset(leaf for disk in self.disks for leaf in disk.leaves)

    @property
    def root(self) -> Path:
        return Path("/")

    @property
    def each_bytes(self) -> int:
        """What each disk can give to an array: as much as the smallest has."""
        return min(disk.size_bytes for disk in self.disks)

    @property
    def filling_s(self) -> float:
        """How long it takes to fill the slices, as long as nothing better is known."""
        return self.slice_bytes / min(FILLED_PER_S[disk.media] for disk in self.disks)

    @property
    def media(self) -> Media:
        """The slowest disk's."""
        return min((disk.media for disk in self.disks), key=list(Media).index)


def slice_of(disks: Sequence[Disk]) -> int:
    """How many bytes of each disk the small arrays have. Raise RefusalError if there is no room to
    measure anything."""
    smallest = min(disks, key=lambda disk: disk.size_bytes)
    most = min(LARGEST_BYTES[disk.media] for disk in disks)
    room = min(most, smallest.size_bytes - OFFSET_BYTES - TAIL_BYTES)
    size = room // STEP_BYTES * STEP_BYTES
    if size < LEAST_BYTES:
        raise RefusalError(
            f"{smallest.device} is too small to measure on; a disk of "
            f"{(LEAST_BYTES + OFFSET_BYTES + TAIL_BYTES) // MIB} MiB is the least."
        )
    return size


def first_free() -> str:
    """The lowest kernel name of an array that is not there. Raise RefusalError if all are taken."""
    return _free(range(HIGHEST + 1))


def last_free() -> str:
    """The highest one, likewise."""
    return _free(range(HIGHEST, -1, -1))


def _free(minors: Iterable[int]) -> str:
    for minor in minors:
        if sysfs.read_or(Path(f"/sys/block/md{minor}/md/array_state"), "clear") == "clear":
            return f"md{minor}"
    raise RefusalError("All names from /dev/md0 to /dev/md127 are taken; stop an array.")
