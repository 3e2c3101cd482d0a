"""safe_mode_delay: how soon after the last write the array is marked clean on its disks."""

from pathlib import Path

from autotune.errors import InfeasibleError
from autotune.knobs.base import ArrayNumber, PhaseKind
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array


class SafeModeDelay(ArrayNumber):
    """How long after the last write the array is marked clean on its disks. The next write then
    waits until all of them are marked again, which takes as long as a write to each."""

    # Kernel drivers/md/md.c, md_write_start and safe_delay_store: whole ticks, rounded down. The
    # most is what fits at 1000 ticks a second; seen on 6.1.176 (100 a second): 0.210.
    name = "safe_mode_delay"
    unit = "ms"
    file = "md/safe_mode_delay"
    low, high = 0, 4_294_967
    hazards = (
        "After a crash, an array that was not marked clean is resynced: all of it, or with a "
        "bitmap what was written of late. A longer delay makes that likelier.",
        "With 0 it is never marked clean until it is stopped; autotune does not try that.",
    )

    def applies(self, array: Array) -> bool:
        """Only an array that can be out of sync is marked. With 300 ticks a second the kernel does
        not take its own default back: 0.203 becomes 0.200."""
        text = sysfs.read_or(self.path(array), "0.203")
        return text != "0.203" and (array.md / "sync_action").exists()

    def default(self, array: Array) -> Value | None:
        """200 and a tick of the kernel's clock: 201 to 210"""
        now = self.read(array)
        return now if isinstance(now, int) and 201 <= now <= 210 else None

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        """Whole ticks of every kernel's clock (100, 250, 300 or 1000 a second)."""
        return (self.default(array) or 200, 1000, 5000, 20_000)

    def read(self, array: Array) -> Value:
        return _milliseconds(self.path(array))

    def text(self, value: Value) -> str:
        return f"{int(value) // 1000}.{int(value) % 1000:03}"

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        """A load without pauses never meets an array that is marked clean."""
        return phase.writes and quantity != "throughput"


def _milliseconds(path: Path) -> int:
    text = sysfs.value(path)
    try:
        return round(float(text) * 1000)
    except ValueError:
        raise InfeasibleError(f"{path} holds {text!r} where seconds were expected.") from None
