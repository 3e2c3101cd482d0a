"""Values that the kernel takes and that do harm all the same: the ranges, and who is told.

A profile may come from anybody. Whatever brings its values near an array asks here: what is
refused is not applied, imported, made to stay or exported; what is warned of is said, no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autotune.knobs import by_name, ram_bytes, read_setting
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, Value
from autotune.quantities import show_bytes, show_seconds
from autotune.system.array import Array, Media
from autotune.system.blockdev import number
from autotune.system.memory import DEFAULT_RAM_SHARE, budget_bytes

DAY_S = 86400
LONGEST_REBUILD_DAYS = 30
SLOW = 10
"""A sync held below this part of what members of the kind stream is warned of."""
STREAMS_KIB_S = {Media.HDD: 150_000, Media.SSD: 400_000, Media.NVME: 2_000_000}
"""What one member of the kind reads in sequence."""
LEAST_SYNC_KIB_S = 1000
"""The floor that the kernel keeps a sync at by default: 2 TB take three weeks."""
FASTEST_KIB_S = 30_000_000
"""More than any member streams."""


@dataclass(frozen=True)
class Limits:
    """Below `least` and above `most` a value is refused, below `low` and above `high` warned of.
    None: that end does no harm. `lacks`, `exceeds`: what happens there."""

    least: int | None = None
    low: int | None = None
    high: int | None = None
    most: int | None = None
    lacks: str = ""
    exceeds: str = ""
    off: Value | None = None
    """A value that means something else than its size."""


LIMITS: Mapping[str, Limits] = {
    "stripe_cache_size": Limits(least=64, low=256, lacks="writes wait for a free stripe"),
    "sync_speed_min": Limits(
        least=100,
        low=1000,
        most=FASTEST_KIB_S,
        lacks="a rebuild of an array in use hardly moves",
        exceeds="a sync never makes way for other requests",
    ),
    "sync_speed_max": Limits(
        least=LEAST_SYNC_KIB_S, lacks="a rebuild lasts for weeks, without protection meanwhile"
    ),
    "sync_io_depth": Limits(
        low=8,
        high=256,
        most=4096,
        lacks="a rebuild of an array in use hardly moves",
        exceeds="a sync crowds out other requests",
    ),
    "read_ahead_kb": Limits(
        low=16,
        high=1 << 16,
        most=1 << 18,
        lacks="readers in sequence wait for each request",
        exceeds="each reader fetches that much before it is asked for",
    ),
    "nr_requests": Limits(
        least=16,
        low=32,
        high=2048,
        lacks="the disks have nothing to choose from",
        exceeds="requests wait behind a long queue",
    ),
    "max_sectors_kb": Limits(least=64, low=128, lacks="large requests are cut into many"),
    "array_max_sectors_kb": Limits(least=64, low=128, lacks="large requests are cut into many"),
    "wbt_lat_usec": Limits(least=100, low=500, lacks="writes are held back nearly always", off=0),
    "safe_mode_delay": Limits(
        *(1, None, 60_000, 3_600_000),
        lacks="any crash means a resync",
        exceeds="nearly any crash means a resync",
    ),
    "read_expire": Limits(
        low=50,
        high=5000,
        most=60_000,
        lacks="a hard disk seeks for each read",
        exceeds="a read may wait so long behind others",
    ),
    "fifo_batch": Limits(
        high=256, most=1024, exceeds="requests elsewhere on a disk, and writes, wait for long"
    ),
    "group_thread_cnt": Limits(high=32, most=256, exceeds="threads take turns, and memory"),
    "preread_bypass_threshold": Limits(
        high=256, most=2048, exceeds="small writes can wait behind large ones without end"
    ),
}
"""Knobs that are not here have no harmful end."""


@dataclass(frozen=True)
class Judgement:
    """Whole sentences: why values must not be set, and what to know of the others."""

    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def judge(setting: Setting) -> Judgement:
    """What values do on any array. Those of unknown knobs and of another type are not judged."""
    refusals, warnings = [], []
    for name, value in setting.items():
        limits = LIMITS.get(name)
        if limits is None or not isinstance(value, int) or value == limits.off:
            continue
        if limits.least is not None and value < limits.least:
            refusals.append(f"{name} {value} is below {limits.least}: {limits.lacks}.")
        elif limits.most is not None and value > limits.most:
            refusals.append(f"{name} {value} is above {limits.most}: {limits.exceeds}.")
        elif limits.low is not None and value < limits.low:
            warnings.append(f"{name} {value} is low: {limits.lacks}.")
        elif limits.high is not None and value > limits.high:
            warnings.append(f"{name} {value} is high: {limits.exceeds}.")
    return Judgement(tuple(refusals), tuple(warnings))


def judge_on(array: Array, setting: Setting, ram_budget_bytes: int | None = None) -> Judgement:
    """What values do on this array, within a RAM budget if there is one.

    What it has already is only warned of: leaving it alone sets nothing.
    """
    knobs = [by_name(name) for name in setting]
    now = read_setting(array, [knob for knob in knobs if knob.applies(array)])
    changed = {name: value for name, value in setting.items() if now.get(name) != value}
    kept = {name: value for name, value in setting.items() if name not in changed}
    refusals: list[str] = []
    warnings: list[str] = []
    if (slowest := _rebuild(array, setting)) is not None:
        refused, text = slowest
        (refusals if refused and "sync_speed_max" in changed else warnings).append(text)
        # It says more than the range does.
        changed.pop("sync_speed_max", None)
        kept.pop("sync_speed_max", None)
    judged, left = judge(changed), judge(kept)
    refusals += judged.refusals
    warnings += [*judged.warnings, *left.refusals, *left.warnings]
    if (hogging := _never_yields(array, setting)) is not None:
        warnings.append(hogging)
    cost = ram_bytes(array, setting)
    if ram_budget_bytes is not None and cost > ram_budget_bytes and cost > ram_bytes(array, now):
        refusals.append(
            f"The settings may take {show_bytes(cost)} of RAM on {array.device}, more than the "
            f"budget of {show_bytes(ram_budget_bytes)}."
        )
    return Judgement(tuple(refusals), tuple(warnings))


def ram_budget_for(profile: Profile, array: Array) -> int:
    """What a profile may take here: what it was made for, if that was for this very array, else
    the share of memory that is everybody's default. A stranger's file can ask for anything."""
    usual = budget_bytes(DEFAULT_RAM_SHARE, array.root)
    if profile.proven_on.uuid and profile.proven_on.uuid == array.uuid:
        return max(usual, profile.ram_budget_bytes)
    return usual


def bearable(array: Array, name: str, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Those of a knob's values that would not be refused on this array."""
    return tuple(v for v in values if not judge_on(array, {name: v}).refusals)


def _rebuild(array: Array, setting: Setting) -> tuple[bool, str] | None:
    """Whether sync_speed_max makes a rebuild last so long that it is refused, and how long; None
    if there is nothing to say of that."""
    speed, usual = setting.get("sync_speed_max"), STREAMS_KIB_S[array.media]
    if not isinstance(speed, int) or speed <= 0:
        return None
    seconds = _member_kib(array) / speed
    if seconds > LONGEST_REBUILD_DAYS * DAY_S:
        return True, (
            f"With sync_speed_max {speed} a rebuild of {array.device} would take at least "
            f"{seconds / DAY_S:.0f} days, without protection meanwhile."
        )
    if speed < LEAST_SYNC_KIB_S or speed * SLOW >= usual:
        return None
    return False, (
        f"sync_speed_max {speed} is low for such members, which can do about {usual}: a rebuild "
        f"of {array.device} takes {show_seconds(seconds)} or more."
    )


def _never_yields(array: Array, setting: Setting) -> str | None:
    speed, usual = setting.get("sync_speed_min"), STREAMS_KIB_S[array.media]
    if not isinstance(speed, int) or not usual < speed <= FASTEST_KIB_S:
        return None
    return (
        f"sync_speed_min {speed} is above the {usual} that such members do, so a sync never makes "
        "way for other requests."
    )


def _member_kib(array: Array) -> int:
    """What a rebuild writes to one member."""
    sizes = [member.size_bytes // 1024 for member in array.members]
    return number(array.md / "component_size") or max(sizes, default=0)
