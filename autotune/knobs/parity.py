"""Knobs of RAID 4/5/6 beside the stripe cache: threads, and how parity is brought up to date."""

from autotune.knobs.base import ArrayNumber, PhaseKind, ladder, processors
from autotune.problem.setting import Value
from autotune.system.array import Array
from autotune.system.blockdev import number


class _Parity(ArrayNumber):
    """Only writes keep parity."""

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.writes


class GroupThreads(_Parity):
    """How many threads for each NUMA node compute parity; with 0, one thread does all."""

    # Range: kernel drivers/md/raid5.c, seen on 6.1.176 (8193 and -1: EINVAL).
    name = "group_thread_cnt"
    unit = "threads"
    file = "md/group_thread_cnt"
    low, high, kernel_default = 0, 8192, 0
    hazards = (
        "Written while a sync runs, it can hang the array or crash the kernel; autotune refuses.",
        "A change stops all requests to the array for a moment.",
    )

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        """Up to the processors there are: more threads only take turns."""
        return (0, *(n for n in (1, 2, 4, 8, 16) if n <= processors(array)))


class RmwLevel(_Parity):
    """How parity is brought up to date when a part of a stripe is written: 0 always reads the whole
    stripe, 1 chooses what takes fewer reads, 2 prefers to read only what changes."""

    # Seen on 6.1.176 (3: EINVAL).
    name = "rmw_level"
    file = "md/rmw_level"
    ordered = False
    low, high, kernel_default = 0, 2, 1
    hazards = ("On RAID6, some processors support only 0.",)

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return (0, 1, 2)


class PrereadBypass(_Parity):
    """How often a write of a whole stripe may overtake a write that has to read first."""

    name = "preread_bypass_threshold"
    unit = "stripes"
    file = "md/preread_bypass_threshold"
    low, high, kernel_default = 0, 32768, 1
    """Up to the largest cache; `consistent` holds it against the cache of the same setting."""
    hazards = ("The kernel refuses a value above stripe_cache_size, so it is written after that.",)

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        cache = number(array.md / "stripe_cache_size")
        return (0, 1, *(n for n in ladder(2, 256) if n.bit_count() == 1 and n <= cache))
