"""Knobs of the members' disks beside the scheduler. A disk's queue may serve other arrays too."""

from pathlib import Path

from autotune.knobs.base import (
    MemberNumber,
    PhaseKind,
    disk_files,
    ladder,
    processors,
    read_aheads,
)
from autotune.knobs.resets import DEPTHS
from autotune.knobs.scheduler import hardware_queues, queue_depth
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array, Media
from autotune.system.blockdev import number
from autotune.system.sysfs import Write


class NrRequests(MemberNumber):
    """How many requests may wait in a disk's queue for the scheduler to order."""

    name = "nr_requests"
    unit = "requests"
    file = "queue/nr_requests"
    low, high = 4, 4096
    hazards = (
        "A change of the scheduler resets it, so it is written after that.",
        "With the scheduler none, the kernel refuses more than the disk takes at once.",
    )

    def default(self, array: Array) -> Value | None:
        """2 × min(the disk's queue depth, 128) with a scheduler; the queue depth with `none`"""
        # Kernel block/blk-mq-sched.c; seen on 6.1.176: 128 and 64 at depth 64.
        defaults = set()
        for disk, path in zip(array.disks, disk_files(array, "queue/scheduler"), strict=True):
            depth = queue_depth(array, disk)
            if depth is None:
                return None
            plain = sysfs.read_or(path, "[none]").find("[none]") >= 0
            defaults.add(depth if plain else 2 * min(depth, 128))
        return defaults.pop() if len(defaults) == 1 else None

    def paths(self, array: Array) -> tuple[Path, ...]:
        """A change also resets mq-deadline's `async_depth`."""
        beside = (disk_files(array, f"queue/{file}") for file in DEPTHS)
        found = (path for paths in beside for path in paths if sysfs.read_or(path, "") != "")
        return (*super().paths(array), *found)

    def writes(self, array: Array, value: Value) -> list[Write]:
        """The depths as they were found come after it: at a start they are not what it sets."""
        found = {write for member in array.members for write in member.scheduler}
        kept = [write for write in found if write.path.name == "async_depth"]
        return [*super().writes(array, value), *sorted(kept, key=lambda write: write.path)]

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
    file = "queue/max_sectors_kb"
    low, high = 4, 2**31 - 1
    """Of any disk; `bounds` are those of this array's."""
    hazards = (
        "Linux 6.1 refuses a value that is too large; 6.12 reduces it and reports success. "
        "autotune never writes more than max_hw_sectors_kb.",
    )

    def bounds(self, array: Array) -> tuple[int, int]:
        """From a page (seen on 6.1.176: 3 is EINVAL) to what every disk's hardware takes."""
        limits = [number(path) for path in disk_files(array, "queue/max_hw_sectors_kb")]
        return array.page_bytes // 1024, min(limits, default=0)

    def default(self, array: Array) -> Value | None:
        """the disk's own limit (`max_hw_sectors_kb`) up to 1280; later kernels differ"""
        # BLK_DEF_MAX_SECTORS; drivers may ask for something else.
        high = self.bounds(array)[1]
        return high if high <= 1280 else None

    def paths(self, array: Array) -> tuple[Path, ...]:
        """With the disks' read-ahead, which Linux 6.9 and newer raise with it."""
        own = super().paths(array)
        return (*own, *read_aheads(own))

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        high = min(self.bounds(array)[1], 16384)
        return tuple(sorted({*(step for step in ladder(64, high) if step % 64 == 0), high}))

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.reads or phase.writes or phase.checks


class WbtLatency(MemberNumber):
    """How long reads may take: beyond that, the kernel holds back buffered writes; 0: never."""

    name = "wbt_lat_usec"
    unit = "µs"
    file = "queue/wbt_lat_usec"
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


class QueueDepth(MemberNumber):
    """How many requests a SATA or SAS disk gets at once, to put them in order itself. With 1, a
    SATA disk gets them one by one: native command queuing (NCQ) is off."""

    # Kernel drivers/scsi/scsi_sysfs.c; drivers/ata/libata-sata.c takes at most what the disk says.
    name = "queue_depth"
    unit = "requests"
    file = "device/queue_depth"
    low, high = 1, 4096
    """Of any disk; `bounds` are those of this array's."""
    hazards = (
        "A disk that gets many requests at once may let one wait for long.",
        "More than a disk takes is refused or reduced; such a setting is not measured.",
    )

    def bounds(self, array: Array) -> tuple[int, int]:
        """Up to what every disk's controller takes; NVMe and virtio disks have no such file."""
        hosts = array.root / "sys/class/scsi_host"
        devices = (path.parent.resolve().name for path in disk_files(array, self.file))
        limits = [number(hosts / f"host{name.split(':')[0]}/can_queue") for name in devices]
        return self.low, min([*(limit for limit in limits if limit), self.high])

    def default(self, array: Array) -> Value | None:
        """the driver's choice, for SATA what the disk says: 32 at most"""
        return None

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        high = self.bounds(array)[1]
        return tuple(1 << k for k in range(9) if 1 << k <= high)

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.reads or phase.writes or phase.checks


class RqAffinity(MemberNumber):
    """Which processor ends a request: the one that the disk interrupts (0), one that shares a cache
    with the one that asked (1), or the one that asked (2)."""

    # Kernel block/blk-sysfs.c; without SMP every store is EINVAL. block/blk-mq.c,
    # blk_mq_complete_need_ipi.
    name = "rq_affinity"
    file = "queue/rq_affinity"
    ordered = False
    low, high, kernel_default = 0, 2, 1
    hazards = ("It moves work between processors, which other programs may want.",)

    def applies(self, array: Array) -> bool:
        """Only where there is a choice of processors; the kernel refuses it otherwise."""
        return processors(array) > 1 and super().applies(array)

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return (0, 1, 2)

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.reads or phase.writes
