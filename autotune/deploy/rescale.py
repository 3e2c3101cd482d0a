"""Whether a profile fits an array, and what its values become there. Changes nothing.

What has to be alike: the level, the media, and, if the profile sets the speed of a sync, the side
of Linux 6.16 that the kernel is on, where md got another way to throttle one (MD_FACTS §3). The
number of members and the chunk may differ: what depends on them is rescaled.

- `stripe_cache_size` counts stripes, and each takes one page of every member. The same number is
  the same memory a member, more or less in all as there are more or fewer members. So it stays,
  but is cut to what this machine's RAM budget leaves. It is never raised above what was proven.
- `sync_speed_min` and `sync_speed_max` are per member, and go with how fast a member reads in
  sequence here and there, where that is known.
- `read_ahead_kb` and `array_max_sectors_kb` go with the width of a stripe: data disks × chunk.
- A `scheduler` that the disks here do not offer is left out. Everything else stays as it is.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from autotune.knobs import Knob, by_name, consistent, harmful, missing
from autotune.problem.profile import Profile, ProvenOn
from autotune.problem.setting import Setting, Value
from autotune.quantities import KIB, show_bytes, show_rate
from autotune.system import sync
from autotune.system.array import PARITY, Array

NEW_THROTTLE = (6, 16)
STRIPES = ("read_ahead_kb", "array_max_sectors_kb")
AS_FAST = 1.25
"""Members whose rates differ by less are taken to be equally fast: a short read tells no better."""
MEDIA = {"hdd": "hard disks", "ssd": "SSDs", "nvme": "NVMe disks"}


@dataclass(frozen=True)
class Change:
    """One knob of a profile: its value there, its value here (None: left as it is), and why they
    differ, or nothing if they do not."""

    knob: str
    there: Value
    here: Value | None
    why: str = ""


@dataclass(frozen=True)
class Plan:
    """What a profile comes to on an array. `refusals` say, a sentence each, why it does not fit;
    `notes` what is different but no obstacle."""

    changes: tuple[Change, ...]
    refusals: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def setting(self) -> Setting:
        return {change.knob: change.here for change in self.changes if change.here is not None}


_PROVEN = "The profile was proven"


def misfits(proven: ProvenOn, knobs: Iterable[str], array: Array) -> list[str]:
    """Why what was proven there says nothing of this array."""
    texts = []
    if proven.level != array.level:
        texts.append(f"{_PROVEN} on {proven.level}, and {array.device} is {array.level}.")
    if proven.media != array.media.value:
        there, here = MEDIA[proven.media], MEDIA[array.media.value]
        texts.append(f"{_PROVEN} on {there}, and {array.device} is of {here}.")
    kernel = kernel_version(proven.kernel)
    if kernel and (kernel >= NEW_THROTTLE) != (array.kernel_version >= NEW_THROTTLE):
        speeds = [knob for knob in knobs if knob in (*sync.SPEEDS, "sync_io_depth")]
        if speeds:
            texts.append(
                f"{_PROVEN} on Linux {proven.kernel}, and this is {array.kernel}: since 6.16 "
                f"md throttles a sync in another way, so its {speeds[0]} means something else."
            )
    return texts


def differences(proven: ProvenOn, array: Array) -> list[str]:
    """What is different from where it was proven, but no obstacle."""
    texts = []
    if proven.members != array.raid_disks:
        texts.append(f"{_PROVEN} on {proven.members} members; here are {array.raid_disks}.")
    chunk_kib = array.chunk_bytes // 1024
    if proven.chunk_kib != chunk_kib:
        texts.append(
            f"{_PROVEN} with chunks of {proven.chunk_kib} KiB; here they are {chunk_kib} KiB."
        )
    kernel = kernel_version(proven.kernel)
    if kernel is None or kernel != array.kernel_version:
        texts.append(f"{_PROVEN} on Linux {proven.kernel}; this is {array.kernel}.")
    return texts


def kernel_version(text: str) -> tuple[int, int] | None:
    """(6, 1) of "6.1.176-foo"; None of what is no version."""
    found = re.match(r"(\d{1,4})\.(\d{1,4})(?!\d)", text)
    return (int(found[1]), int(found[2])) if found else None


def plan(profile: Profile, array: Array, budget_bytes: int, member_kib_s: int | None) -> Plan:
    """What the profile comes to on the array within a RAM budget. `member_kib_s`: how fast the
    slowest member reads in sequence, if that was measured. Raise UsageError for a knob that no
    array has."""
    proven, notes = profile.proven_on, differences(profile.proven_on, array)
    refusals = misfits(proven, profile.knobs, array)
    if refusals:
        return Plan((), tuple(refusals), tuple(notes))
    rates = (proven.member_kib_s, member_kib_s)
    if set(sync.SPEEDS) & set(profile.knobs) and None in rates:
        notes.append(
            "How fast a member is there and here is not known, so the profile's sync speeds are "
            "taken as they are."
        )
    changes = {}
    for name, value in profile.knobs.items():
        here, why = value, ""
        if name in sync.SPEEDS:
            here, why = _speed(by_name(name), array, value, *rates)
        elif name in STRIPES:
            here, why = _by_stripe(by_name(name), array, value, proven)
        changes[name] = Change(name, value, here, why)
    return _fitted(changes, array, budget_bytes, notes)


def plan_values(values: Mapping[str, Value], array: Array, budget_bytes: int) -> Plan:
    """The same for plain values that were proven nowhere."""
    changes = {name: Change(name, value, value) for name, value in values.items()}
    return _fitted(changes, array, budget_bytes, [])


def _fitted(changes: dict[str, Change], array: Array, budget_bytes: int, notes: list[str]) -> Plan:
    """The changes within the RAM budget, and without a scheduler that is not offered."""
    refusals = []
    left = budget_bytes
    # The cache takes the most, and can take what the others leave.
    for name in sorted(changes, key=lambda name: name == "stripe_cache_size"):
        knob, change = by_name(name), changes[name]
        if reason := missing(array, knob):
            refusals.append(f'It sets "{name}". {reason}')
            continue
        reason = knob.valid(array, change.there if change.here is None else change.here)
        if reason and name == "scheduler":
            changes[name] = Change(name, change.there, None, f"left as it is: {reason}")
            continue
        if reason:
            refusals.append(reason)
            continue
        change = changes[name] = _affordable(knob, array, change, left)
        if change.here is None:
            refusals.append(change.why)
            continue
        left -= knob.ram_bytes(array, change.here)
    planned = Plan(tuple(changes.values()), tuple(refusals), tuple(notes))
    if not refusals and not planned.setting:
        return Plan(planned.changes, (f"Nothing of it can be set on {array.device}.",), ())
    reason = None if refusals else consistent(array, planned.setting)
    if refusals or reason:
        return Plan(planned.changes, (reason,), planned.notes) if reason else planned
    judged = harmful.judge_on(array, planned.setting)
    return Plan(planned.changes, judged.refusals, (*planned.notes, *judged.warnings))


def without(plan: Plan, names: Collection[str], why: str) -> Plan:
    """The plan with these settings left as they are."""
    changes = tuple(
        Change(change.knob, change.there, None, "left as it is") if change.knob in names else change
        for change in plan.changes
    )
    rest = Plan(changes, plan.refusals, (*plan.notes, why))
    if plan.refusals or rest.setting:
        return rest
    return Plan(changes, (f"Nothing of it is left to set. {why}",), ())


def _affordable(knob: Knob, array: Array, change: Change, budget_bytes: int) -> Change:
    """The change, its value cut to the RAM that there is; None if not even the least fits."""
    assert change.here is not None
    cost = knob.ram_bytes(array, change.here)
    if cost <= budget_bytes:
        return change
    fitting = [v for v in knob.choices(array, budget_bytes) if int(v) < int(change.here)]
    budget = show_bytes(max(budget_bytes, 0))
    if not fitting:
        why = (
            f"Its {knob.name} of {change.here} takes {show_bytes(cost)} of RAM here, the budget "
            f"leaves {budget}, and no smaller value fits; allow more (--ram-budget)."
        )
        return Change(knob.name, change.there, None, why)
    why = f"{change.here} takes {show_bytes(cost)} of RAM, and the budget leaves {budget}"
    return Change(knob.name, change.there, fitting[-1], f"{change.why}; {why}".lstrip("; "))


def _speed(
    knob: Knob, array: Array, value: Value, there_kib_s: int | None, here_kib_s: int | None
) -> tuple[Value, str]:
    """Rounded down, so that a minimum stays at or below the maximum."""
    if not there_kib_s or not here_kib_s or not isinstance(value, int):
        return value, ""
    ratio = here_kib_s / there_kib_s
    if 1 / AS_FAST <= ratio <= AS_FAST:
        return value, ""
    steps = [int(step) for step in knob.choices(array, 0)]
    here = max((step for step in steps if step <= value * ratio), default=steps[0])
    return here, (
        f"a member reads {show_rate(here_kib_s * KIB)} here, {show_rate(there_kib_s * KIB)} there"
    )


def _by_stripe(knob: Knob, array: Array, value: Value, proven: ProvenOn) -> tuple[Value, str]:
    there = data_disks(proven.level, proven.members) * proven.chunk_kib
    here = data_disks(array.level, array.raid_disks) * (array.chunk_bytes // 1024)
    # A mirror has no chunks, and nobody reads ahead by multiplying nothing.
    if there == here or not (there and here and value) or not isinstance(value, int):
        return value, ""
    wanted = value * here / there
    steps = [int(step) for step in knob.choices(array, 1 << 62)]
    nearest = min(steps, key=lambda step: abs(math.log(step / wanted)))
    return nearest, f"a stripe holds {here} KiB here, {there} there"


def data_disks(level: str, members: int) -> int:
    """The members whose worth of data a stripe holds. For RAID10 all of them: only ratios count,
    and two arrays are taken to have as many copies."""
    return max(members - PARITY.get(level, 0), 1) if level != "raid1" else 1
