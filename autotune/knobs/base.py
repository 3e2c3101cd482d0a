"""What a knob is, and the two kinds of file that knobs live in."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from autotune.errors import InfeasibleError
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sysfs import Write
from autotune.untrusted import plain


class PhaseKind(Protocol):
    """What a knob has to know of a phase."""

    @property
    def name(self) -> str: ...
    @property
    def buffered_read(self) -> bool:
        """Reads go through the page cache."""

    @property
    def reads(self) -> bool: ...
    @property
    def writes(self) -> bool: ...
    @property
    def checks(self) -> bool:
        """A sync runs; its rate is the phase's throughput, latencies are a probe's beside it."""


class Knob(Protocol):
    """One tunable of an array.

    Choices are ascending numbers if `ordered`, else names or numbers without an order. Nothing
    here writes: `writes` says what to store, in order; the journal saves every file in `paths`
    before and brings them back in that order. Reading raises OSError if the array vanished.
    """

    @property
    def name(self) -> str: ...
    @property
    def unit(self) -> str: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def hazards(self) -> tuple[str, ...]: ...

    def applies(self, array: Array) -> bool:
        """Whether this array has the knob, and all its members alike enough to tune it."""

    def read(self, array: Array) -> Value:
        """The value in effect. Members that differ read as "a,b,c", in the order of
        `array.disks`; such a value is valid on this array and is written back to each."""

    def default(self, array: Array) -> Value | None:
        """What this kernel would set on this array, or None where that cannot be known."""

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        """Values worth trying on this array that cost at most `memory_bytes` of RAM."""

    def legal(self, array: Array) -> str:
        """The full range that this kernel takes, for people: "17 to 32768"."""

    def impossible(self, value: Value) -> str | None:
        """None if there may be an array that takes the value, else a sentence saying why not.
        Whatever is not impossible can be asked about: its RAM, whether it is valid."""

    def valid(self, array: Array, value: Value) -> str | None:
        """None if this kernel takes the value on this array, else a sentence saying why not."""

    def paths(self, array: Array) -> tuple[Path, ...]:
        """Every file that writing this knob can change, in the order to restore them."""

    def writes(self, array: Array, value: Value) -> list[Write]:
        """The stores that make a valid value effective, in order."""

    def ram_bytes(self, array: Array, value: Value) -> int:
        """The memory that the value may cost; grows with the value."""

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        """Whether the knob can change a phase's "throughput" or latency ("p50", "p99", "p999")."""


class Number:
    """A knob that is a whole number from `low` to `high`."""

    name = ""
    unit = ""
    ordered = True
    hazards: tuple[str, ...] = ()
    low = 0
    high = 0
    kernel_default: int | None = None

    def default(self, array: Array) -> Value | None:
        return self.kernel_default

    def bounds(self, array: Array) -> tuple[int, int]:
        return self.low, self.high

    def legal(self, array: Array) -> str:
        low, high = self.bounds(array)
        return f"{low} to {high}"

    def impossible(self, value: Value) -> str | None:
        if isinstance(value, int) and self.low <= value <= self.high:
            return None
        return (
            f"{self.name} must be a whole number from {self.low} to {self.high}, "
            f"not {plain(str(value))}."
        )

    def valid(self, array: Array, value: Value) -> str | None:
        low, high = self.bounds(array)
        if not isinstance(value, int):
            return f"{self.name} is a whole number, not {value!r}."
        if not low <= value <= high:
            return f"{self.name} must be from {low} to {high} on {array.device}, not {value}."
        return None

    def ram_bytes(self, array: Array, value: Value) -> int:
        return 0

    def text(self, value: Value) -> str:
        """What is stored for a value, as the kernel shows it."""
        return str(value)


class ArrayNumber(Number):
    """A number in one file of the array."""

    file = ""
    """The path below the array's folder in sysfs: "md/stripe_cache_size"."""

    def path(self, array: Array) -> Path:
        return array.block / self.file

    def applies(self, array: Array) -> bool:
        return self.path(array).exists()

    def read(self, array: Array) -> Value:
        return whole(self.path(array))

    def paths(self, array: Array) -> tuple[Path, ...]:
        return (self.path(array),)

    def writes(self, array: Array, value: Value) -> list[Write]:
        return [Write(self.path(array), self.text(value))]


class MemberNumber(Number):
    """A number in one file of each member's disk, the same in all."""

    file = ""
    """The path below the disk's folder in sysfs: "queue/nr_requests"."""

    def applies(self, array: Array) -> bool:
        """Only if the members are alike: a ladder has no place for "64,128"."""
        return on_every_disk(array, self.file) and isinstance(self.read(array), int)

    def read(self, array: Array) -> Value:
        values = [self.read_file(path) for path in disk_files(array, self.file)]
        return values[0] if len(set(values)) == 1 else ",".join(map(str, values))

    def read_file(self, path: Path) -> int:
        return whole(path)

    def paths(self, array: Array) -> tuple[Path, ...]:
        return disk_files(array, self.file)

    def writes(self, array: Array, value: Value) -> list[Write]:
        return [Write(path, self.text(value)) for path in disk_files(array, self.file)]


def disk_files(array: Array, file: str) -> tuple[Path, ...]:
    """A file of every disk under the array, by its path below the disk's folder."""
    return tuple(array.root / "sys/block" / disk / file for disk in array.disks)


def read_aheads(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The read-ahead of the same devices, which a store to one of these files may raise."""
    found = (sysfs.device(path) / "queue/read_ahead_kb" for path in paths)
    return tuple(path for path in found if path.exists())


def on_every_disk(array: Array, file: str) -> bool:
    """Whether every member's disk has the file and really queues requests.

    Never with a write journal: its disk is of another kind, often the system's, and udev cannot
    tell it from the members that hold data. Devices without `mq` (dm, md, NVMe multipath heads)
    pass requests on; on 6.1 their queue files exist all the same, and lie.
    """
    paths = disk_files(array, file)
    return (
        bool(paths)
        and not array.has_journal
        and all(
            (sysfs.device(path) / "mq").is_dir() and sysfs.read_or(path, "") != "" for path in paths
        )
    )


def whole(path: Path) -> int:
    """The file's value as a number. InfeasibleError if it is none."""
    text = sysfs.value(path)
    try:
        return int(text)
    except ValueError:
        raise InfeasibleError(f"{path} holds {text!r} where a number was expected.") from None


def processors(array: Array) -> int:
    """How many processors the machine has."""
    return len(list((array.root / "sys/devices/system/cpu").glob("cpu[0-9]*"))) or 1


def ladder(low: int, high: int) -> tuple[int, ...]:
    """Powers of two and their halves between (64, 96, 128, 192, …) from `low` to `high`."""
    steps = {step for k in range(1, 40) for step in (1 << k, 3 << (k - 1))}
    return tuple(sorted(step for step in steps if low <= step <= high))
