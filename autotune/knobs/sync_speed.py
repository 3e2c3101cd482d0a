"""sync_speed_min, sync_speed_max: how fast a check, resync or recovery may go."""

from autotune.knobs.base import ArrayNumber, PhaseKind
from autotune.problem.setting import Value
from autotune.system.array import Array, Media

_STEPS = (1000, 1500, 2000, 3000, 5000, 7000)
_LADDER = tuple(step * 10**k for k in range(4) for step in _STEPS if step * 10**k <= 3_000_000)
"""KiB/s, ratios of about √2."""

TOP = {Media.HDD: 500_000, Media.SSD: 1_000_000, Media.NVME: 3_000_000}
"""Above what a member of this kind can stream: there the throttle is off."""


class _SyncSpeed(ArrayNumber):
    """KiB/s per member. The kernel takes any positive int (0, negative, text: EINVAL)."""

    unit = "KiB/s a member"
    low, high = 1, 2**31 - 1

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return tuple(speed for speed in _LADDER if speed <= TOP[array.media])

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.checks


class SyncSpeedMin(_SyncSpeed):
    """The speed of a check, resync or recovery below which it does not yield to other requests."""

    name = "sync_speed_min"
    file = "md/sync_speed_min"
    kernel_default = 1000
    hazards = (
        "Below it a sync never yields to foreground I/O.",
        "The kernel accepts a value above sync_speed_max, though it has no meaning.",
    )


class SyncSpeedMax(_SyncSpeed):
    """The speed above which a check, resync or recovery pauses: the real limit on Linux < 6.16."""

    name = "sync_speed_max"
    file = "md/sync_speed_max"
    kernel_default = 200_000
    hazards = (
        "A low value makes a rebuild longer, and the array is less protected for as long.",
        "An array that follows the sysctl before a run follows it again after it.",
    )


class SyncIoDepth(ArrayNumber):
    """How many requests a sync keeps in flight while the array is busy (Linux 6.16 and later)."""

    name = "sync_io_depth"
    unit = "requests"
    file = "md/sync_io_depth"
    low, high, kernel_default = 1, 2**31 - 1, 32
    hazards = ("Only Linux 6.16 and later have it. Until it is written, it follows the sysctl.",)

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return (1, 2, 4, 8, 16, 32, 64, 128, 256)

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.checks
