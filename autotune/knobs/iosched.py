"""Settings of the schedulers themselves. They are there only while their scheduler is in force.

A switch to a scheduler sets its own settings to the kernel's defaults. So under another one a
setting counts as its default, the value that a switch would give; and it can be no other.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from autotune.knobs.base import MemberNumber, PhaseKind, on_every_disk, whole
from autotune.knobs.scheduler import NONE, by_disk, offered
from autotune.problem.setting import Setting, Value
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sysfs import Write


class SchedulersOwn(MemberNumber):
    """A setting of one scheduler, the same on each member's disk."""

    scheduler = ""
    kernel_default: int = 0
    """What a switch to the scheduler sets."""
    values: tuple[Value, ...] = ()
    """Those worth trying. Of times, whole ticks of every kernel's clock: 100, 250, 300 or 1000 a
    second."""

    def applies(self, array: Array) -> bool:
        """Where every disk offers the scheduler, be it in force or not, and members are alike."""
        files = on_every_disk(array, "queue/scheduler") and self.scheduler in offered(array)
        return files and isinstance(self.read(array), int)

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return self.values

    def read_file(self, path: Path) -> int:
        return whole(path) if path.exists() else self.kernel_default

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.reads or phase.writes or phase.checks


class ReadExpire(SchedulersOwn):
    """How long a read may wait in mq-deadline until it goes before those that lie better on the
    disk."""

    # Kernel block/mq-deadline.c (read_expire = HZ / 2), seen on 6.1.176: any whole number is taken.
    name = "read_expire"
    unit = "ms"
    file = "queue/iosched/read_expire"
    scheduler = "mq-deadline"
    low, high, kernel_default = 0, 2**31 - 1, 500
    values = (100, 200, 500, 1000, 2000)
    hazards = (
        "A small value makes a hard disk seek for nearly every read, and takes its throughput.",
        "It is there under mq-deadline alone; a switch of the scheduler resets it, so it is "
        "written after that.",
    )


class FifoBatch(SchedulersOwn):
    """How many requests mq-deadline sends to a disk in the order of their places before it looks
    at what has waited too long."""

    name = "fifo_batch"
    unit = "requests"
    file = "queue/iosched/fifo_batch"
    scheduler = "mq-deadline"
    low, high, kernel_default = 0, 2**31 - 1, 16
    values = (1, 4, 16, 64)
    hazards = (
        "A large value makes those wait that lie elsewhere on the disk.",
        "It is there under mq-deadline alone; a switch of the scheduler resets it, so it is "
        "written after that.",
    )


class LowLatency(SchedulersOwn):
    """Whether bfq prefers programs that seem to be used by a person, or that ask for little at a
    time (1), or treats all alike (0)."""

    # Kernel block/bfq-iosched.c; Documentation/block/bfq-iosched.rst advises 0 for throughput.
    name = "low_latency"
    file = "queue/iosched/low_latency"
    ordered = False
    scheduler = "bfq"
    low, high, kernel_default = 0, 1, 1
    values = (0, 1)
    hazards = (
        "With 1, a program that has just started is served first, at the cost of the others.",
        "It is there under bfq alone; a switch of the scheduler resets it, so it is written after "
        "that.",
    )


ALL: tuple[SchedulersOwn, ...] = (ReadExpire(), FifoBatch(), LowLatency())
RESET_BY_SWITCH = ("queue/nr_requests", "queue/wbt_lat_usec", *(knob.file for knob in ALL))
"""The files of a disk that a switch of its scheduler may reset."""
OWNERS: Mapping[str, str] = {
    **{knob.name: knob.scheduler for knob in ALL},
    "async_depth": "mq-deadline",
}


def out_of_place(array: Array, setting: Setting) -> str | None:
    """A sentence if the setting has a value for a scheduler that it does not put in force."""
    for knob in _of(setting):
        if setting[knob.name] == knob.kernel_default:
            continue
        chosen = by_disk(array, setting.get("scheduler"))
        others = sorted({name for name in chosen.values() if name != knob.scheduler})
        if others:
            return (
                f"{knob.name} {setting[knob.name]} is for {knob.scheduler}, and the disks of "
                f"{array.device} have {', '.join(others)}."
            )
    return None


def contradiction(setting: Setting) -> str | None:
    """The same of a setting alone, whatever it is set on."""
    for knob in _of(setting):
        if setting.get("scheduler", knob.scheduler) != knob.scheduler:
            return (
                f"{knob.name} is for {knob.scheduler}, and the scheduler is {setting['scheduler']}."
            )
    return None


def can_be_set(write: Write, earlier: Iterable[Write]) -> bool:
    """Whether the file of a write is there, and takes a value, after the earlier ones."""
    own = sysfs.is_schedulers_own(write.path)
    if not (own or write.path.name == "async_depth"):
        return True
    scheduler = sysfs.device(write.path) / "queue/scheduler"
    switches = [each.text for each in earlier if each.path == scheduler]
    if not own:
        # Since Linux 7 the queue has it, and refuses to store it without a scheduler.
        return (switches[-1] if switches else sysfs.value(scheduler)) != NONE
    # Those that no knob sets are only written by what found them under that scheduler.
    owner = OWNERS.get(write.path.name, switches[-1] if switches else "")
    return owner == switches[-1] if switches else write.path.exists()


def _of(setting: Setting) -> Iterable[SchedulersOwn]:
    return (knob for knob in ALL if knob.name in setting)
