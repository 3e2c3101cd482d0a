"""The knobs. `for_array` says which of them an array has."""

from collections.abc import Iterable

from autotune.errors import AutotuneError, UsageError, closest
from autotune.knobs import iosched
from autotune.knobs.array_queue import ArrayMaxSectors
from autotune.knobs.base import Knob, MemberNumber, PhaseKind
from autotune.knobs.parity import GroupThreads, PrereadBypass, RmwLevel
from autotune.knobs.queue import MaxSectors, NrRequests, QueueDepth, RqAffinity, WbtLatency
from autotune.knobs.read_ahead import ReadAhead
from autotune.knobs.safe_mode import SafeModeDelay
from autotune.knobs.scheduler import Scheduler
from autotune.knobs.stripe_cache import StripeCacheSize
from autotune.knobs.sync_speed import SyncIoDepth, SyncSpeedMax, SyncSpeedMin
from autotune.knobs.write_order import consistent, plan, restoring, unsafe_now
from autotune.problem.setting import Setting
from autotune.system.array import Array

__all__ = [
    "ALL",
    "DEFAULT",
    "Knob",
    "PhaseKind",
    "by_name",
    "consistent",
    "for_array",
    "is_of_disks",
    "parse_knobs",
    "plan",
    "ram_bytes",
    "read_setting",
    "restoring",
    "unsafe_now",
]

DEFAULT: tuple[Knob, ...] = (
    StripeCacheSize(),
    SyncSpeedMin(),
    SyncSpeedMax(),
    ReadAhead(),
    Scheduler(),
)
ALL: tuple[Knob, ...] = (
    *DEFAULT,
    NrRequests(),
    MaxSectors(),
    WbtLatency(),
    GroupThreads(),
    RmwLevel(),
    PrereadBypass(),
    ArrayMaxSectors(),
    SyncIoDepth(),
    SafeModeDelay(),
    *iosched.ALL,
    QueueDepth(),
    RqAffinity(),
)


def is_of_disks(name: str) -> bool:
    """Whether a knob is one of each member's disk, and not of the array."""
    return isinstance(by_name(name), MemberNumber | Scheduler)


def for_array(array: Array, knobs: Iterable[Knob] = DEFAULT) -> tuple[Knob, ...]:
    """Those of the knobs that this array has."""
    return tuple(knob for knob in knobs if knob.applies(array))


def missing(array: Array, knob: Knob) -> str | None:
    """Why an array does not take the values of a knob, a sentence; None if it does."""
    if knob.applies(array):
        return None
    if is_of_disks(knob.name) and array.has_journal:
        return f"{knob.name} is left alone on an array with a write journal, as {array.device}."
    try:
        now = knob.read(array)
    except (AutotuneError, OSError):
        now = ""
    if "," not in str(now):
        return f"{array.device} has no {knob.name}."
    return (
        f"{array.device} takes no {knob.name} while its disks read different values "
        f"({', '.join(str(now).split(','))}); set them alike first."
    )


def parse_knobs(text: str) -> tuple[Knob, ...]:
    """`default`, `all` and names, with commas between. UsageError if there is no such knob."""
    sets = {"default": DEFAULT, "all": ALL}
    names = [name.strip() for name in text.split(",")]
    wanted = [knob for name in names for knob in sets.get(name) or (by_name(name),)]
    return tuple(dict.fromkeys(wanted))


def by_name(name: str) -> Knob:
    """The knob of this name. UsageError if there is none."""
    for knob in ALL:
        if knob.name == name:
            return knob
    names = [knob.name for knob in ALL]
    hint = closest(name, names)
    raise UsageError(f'There is no setting "{name}"{hint}; the settings are {", ".join(names)}.')


def read_setting(array: Array, knobs: Iterable[Knob]) -> Setting:
    """The values in effect."""
    return {knob.name: knob.read(array) for knob in knobs}


def ram_bytes(array: Array, setting: Setting) -> int:
    """The memory that a whole setting may cost."""
    return sum(by_name(name).ram_bytes(array, value) for name, value in setting.items())
