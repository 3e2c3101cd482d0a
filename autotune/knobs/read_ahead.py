"""read_ahead_kb: how far ahead of a buffered sequential reader the array reads."""

from autotune.knobs.base import ArrayNumber, PhaseKind, ladder
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array


class ReadAhead(ArrayNumber):
    """How far the kernel reads ahead of a program that reads a file from start to end."""

    name = "read_ahead_kb"
    unit = "KiB"
    file = "queue/read_ahead_kb"
    low, high = 0, 1 << 20
    hazards = (
        "LVM, dm-crypt and btrfs above the array use a read-ahead of their own.",
        "Files that are already open keep the old value.",
    )

    def default(self, array: Array) -> Value | None:
        """the larger of 128 and 2 × optimal_io_size"""
        # Seen on 6.1.176: 384 with 196608.
        optimal = sysfs.read_or(array.queue / "optimal_io_size", "0")
        return max(128, 2 * int(optimal) // 1024) if optimal.isdigit() else None

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        top = max(16384, 4 * int(self.default(array) or 128))
        page = array.page_bytes // 1024
        steps = (step for step in ladder(128, top) if step % page == 0)
        return tuple(step for step in steps if self.ram_bytes(array, step) <= memory_bytes)

    def legal(self, array: Array) -> str:
        return f"{self.low} to {self.high}, a multiple of {array.page_bytes // 1024}"

    def valid(self, array: Array, value: Value) -> str | None:
        page = array.page_bytes // 1024
        if isinstance(value, int) and value % page:
            return f"read_ahead_kb must be a multiple of {page} (a page), not {value}."
        return super().valid(array, value)

    def ram_bytes(self, array: Array, value: Value) -> int:
        """the value itself, for one reader; it is page cache, given back when memory runs short"""
        return int(value) * 1024

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.buffered_read
