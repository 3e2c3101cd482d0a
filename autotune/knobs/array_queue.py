"""Knobs of the array's own queue beside the read-ahead."""

from pathlib import Path

from autotune.knobs.base import ArrayNumber, PhaseKind, read_aheads
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.blockdev import number


class ArrayMaxSectors(ArrayNumber):
    """The largest request that the array takes whole; larger ones are cut. If it is no multiple of
    a stripe, the parts of a long write begin and end within stripes."""

    # Kernel drivers/md/raid5.c: max_hw_sectors is 256 stripes of a page each, 1 MiB, on 6.1.
    name = "array_max_sectors_kb"
    unit = "KiB"
    file = "queue/max_sectors_kb"
    low, high = 4, 2**31 - 1
    """Of any array; `bounds` are those of this one."""
    hazards = ("A small value cuts large requests into many, which costs processor time.",)

    def applies(self, array: Array) -> bool:
        """Only on an array with stripes of parity, and where two of them fit into a request."""
        return (array.md / "stripe_cache_size").exists() and len(self.choices(array, 0)) > 1

    def bounds(self, array: Array) -> tuple[int, int]:
        return array.page_bytes // 1024, number(array.queue / "max_hw_sectors_kb")

    def default(self, array: Array) -> Value | None:
        """`max_hw_sectors_kb` up to 1280; later kernels differ"""
        high = self.bounds(array)[1]
        return high if 0 < high <= 1280 else None

    def paths(self, array: Array) -> tuple[Path, ...]:
        """With the array's read-ahead, which Linux 6.9 and newer raise with it."""
        own = super().paths(array)
        return (*own, *read_aheads(own))

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        """One, two, four, … stripes, as many as fit, and the most that the array takes."""
        stripe_kib = int(sysfs.read_or(array.queue / "optimal_io_size", "0")) // 1024
        high = self.bounds(array)[1]
        if not 64 <= stripe_kib <= high:
            return (high,)
        fit = high // stripe_kib
        counts = {fit, *(1 << k for k in range(fit.bit_length()))}
        return tuple(sorted({high, *(count * stripe_kib for count in counts)}))

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        """A sync asks the members, not the array."""
        return not phase.checks and (phase.reads or phase.writes)
