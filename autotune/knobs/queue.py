"""Knobs of the members' disks beside the scheduler. A disk's queue may serve other arrays too."""

from autotune.knobs.base import MemberNumber, PhaseKind, ladder, queue_files
from autotune.knobs.scheduler import hardware_queues, queue_depth
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array, Media
from autotune.system.blockdev import number


class NrRequests(MemberNumber):
    """How many requests may wait in a disk's queue for the scheduler to order."""

    name = "nr_requests"
    unit = "requests"
    file = "nr_requests"
    low, high = 4, 4096
    hazards = (
        "A change of the scheduler resets it, so it is written after that.",
        "With the scheduler none, the kernel refuses more than the disk takes at once.",
    )

    def default(self, array: Array) -> Value | None:
        """2 × min(the disk's queue depth, 128) with a scheduler; the queue depth with `none`"""
        # Kernel block/blk-mq-sched.c; seen on 6.1.176: 128 and 64 at depth 64.
        defaults = set()
        for disk, path in zip(array.disks, queue_files(array, "scheduler"), strict=True):
            depth = queue_depth(array, disk)
            if depth is None:
                return None
            plain = sysfs.read_or(path, "[none]").find("[none]") >= 0
            defaults.add(depth if plain else 2 * min(depth, 128))
        return defaults.pop() if len(defaults) == 1 else None

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        steps = ladder(16, 1024)
        return tuple(step for step in steps if self.ram_bytes(array, step) <= memory_bytes)

    def ram_bytes(self, array: Array, value: Value) -> int:
        """about 512 bytes for each request and hardware queue"""
        queues = sum(max(1, len(hardware_queues(array, disk))) for disk in array.disks)
        return int(value) * 512 * queues

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        """A sync keeps few requests in flight: only its neighbours' latency feels the queue."""
        return quantity != "throughput" if phase.checks else phase.reads or phase.writes


class MaxSectors(MemberNumber):
    """The largest request that a disk gets."""

    name = "max_sectors_kb"
    unit = "KiB"
    file = "max_sectors_kb"
    low, high = 4, 2**31 - 1
    """Of any disk; `bounds` are those of this array's."""
    hazards = (
        "Linux 6.1 refuses a value that is too large; 6.12 reduces it and reports success. "
        "autotune never writes more than max_hw_sectors_kb.",
    )

    def bounds(self, array: Array) -> tuple[int, int]:
        """From a page (seen on 6.1.176: 3 is EINVAL) to what every disk's hardware takes."""
        limits = [number(path) for path in queue_files(array, "max_hw_sectors_kb")]
        return array.page_bytes // 1024, min(limits, default=0)

    def default(self, array: Array) -> Value | None:
        """the disk's own limit (`max_hw_sectors_kb`) up to 1280; later kernels differ"""
        # BLK_DEF_MAX_SECTORS; drivers may ask for something else.
        high = self.bounds(array)[1]
        return high if high <= 1280 else None

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        high = min(self.bounds(array)[1], 16384)
        return tuple(sorted({*(step for step in ladder(64, high) if step % 64 == 0), high}))

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.reads or phase.writes or phase.checks


class WbtLatency(MemberNumber):
    """The read latency from which on a disk holds back buffered writes; 0 turns that off."""

    name = "wbt_lat_usec"
    unit = "µs"
    file = "wbt_lat_usec"
    ordered = False
    """0 means off, that is, beyond the largest."""
    low, high = 0, 10_000_000
    hazards = (
        "Once written, a value stays in force under bfq, which would otherwise turn it off.",
    )

    def default(self, array: Array) -> Value | None:
        """75000 for hard disks, 2000 for SSDs"""
        # Kernel block/blk-wbt.c, wbt_default_latency_nsec.
        return 75_000 if array.media is Media.HDD else 2000

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return (0, 500, 2000, 10_000, 75_000)

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.writes
