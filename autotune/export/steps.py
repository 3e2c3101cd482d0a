"""What a profile sets, as data: which file, what value, in an order that is safe from any state.

What every format is made from. Nothing of a profile, which may come from a stranger, gets past
here but whole numbers in their range, names of a closed set, and harmless letters for comments.
"""

import re
from dataclasses import dataclass

from autotune.errors import UsageError
from autotune.knobs import Knob, by_name, harmful, iosched
from autotune.knobs.base import ArrayNumber, MemberNumber
from autotune.knobs.scheduler import NAMES, Scheduler
from autotune.knobs.write_order import rank
from autotune.problem.profile import Profile
from autotune.problem.setting import Value

_LEVELS = ("raid0", "raid1", "raid4", "raid5", "raid6", "raid10")
CACHE, BYPASS = "md/stripe_cache_size", "md/preread_bypass_threshold"
MIN, MAX = "md/sync_speed_min", "md/sync_speed_max"
THREADS = "md/group_thread_cnt"


@dataclass(frozen=True)
class Step:
    """One store of `text` into `file`, a path below the array's folder in sysfs or, if `on_disks`,
    below that of each member's disk. What is `passing` is soon replaced by another step."""

    on_disks: bool
    file: str
    text: str
    passing: bool = False


def steps(profile: Profile) -> list[Step]:
    """The stores that make a profile effective, in order.

    Where both speeds are set, the min first goes out of the way, so that min ≤ max holds whatever
    was there; a step that sets one of them alone is only safe if it holds with the other.
    Raise UsageError for a knob that does not exist, a value out of its range or one that does
    harm on any array, or values that do not go together.
    """
    knobs = profile.knobs
    if not knobs:
        raise UsageError(f"The profile {_name(profile)} sets nothing, so there is nothing to do.")
    found = [_step(by_name(name), knobs[name]) for name in sorted(knobs, key=rank)]
    _together(profile)
    refusals = harmful.judge(knobs).refusals
    if refusals:
        raise UsageError(
            f"The profile {_name(profile)} would do harm, so it is not exported: "
            + " ".join(refusals)
        )
    low = next((step for step in found if step.file == MIN), None)
    high = next((step for step in found if step.file == MAX), None)
    if low is None or high is None:
        return found
    rest = [step for step in found if step not in (low, high)]
    return [*rest, Step(False, MIN, "1", passing=True), high, low]


def lasting(profile: Profile) -> list[Step]:
    """The steps whose values are what is wanted in the end."""
    return [step for step in steps(profile) if not step.passing]


def cache_stripes(profile: Profile) -> int:
    """How many stripes the profile makes the cache hold; 0 if it leaves that alone."""
    found = [step for step in steps(profile) if step.file == CACHE]
    return int(found[0].text) if found else 0


def level(profile: Profile) -> str:
    """The level that the profile was proven on. UsageError if it is none that md has."""
    if profile.proven_on.level not in _LEVELS:
        raise UsageError(
            f"The profile {_name(profile)} was proven on the level "
            f"{harmless(profile.proven_on.level)!r}, which md does not have."
        )
    return profile.proven_on.level


def _step(knob: Knob, value: Value) -> Step:
    if isinstance(knob, Scheduler):
        if value not in NAMES:
            raise UsageError(
                f"The profile sets the scheduler {harmless(str(value))!r}; what can be exported is "
                f"one for all disks: {', '.join(NAMES)}."
            )
        return Step(True, "queue/scheduler", str(value))
    assert isinstance(knob, ArrayNumber | MemberNumber)
    if reason := knob.impossible(value):
        raise UsageError(reason)
    if isinstance(knob, MemberNumber):
        return Step(True, knob.file, knob.text(value))
    return Step(False, knob.file, knob.text(value))


def _together(profile: Profile) -> None:
    """Raise UsageError if values contradict each other."""
    knobs = profile.knobs
    for pair in ((MIN, MAX), (BYPASS, CACHE)):
        less, more = (file.removeprefix("md/") for file in pair)
        if less in knobs and more in knobs and int(knobs[less]) > int(knobs[more]):
            raise UsageError(f"{less} {knobs[less]} is above {more} {knobs[more]}.")
    if reason := iosched.contradiction(knobs):
        raise UsageError(reason)


def harmless(text: str) -> str:
    """Text reduced to what means nothing in a comment, string or name of any format."""
    return re.sub(r"[^A-Za-z0-9 ._+-]", "?", text[:80])


def slug(profile: Profile) -> str:
    """A name for files and units, from the profile's: lower-case letters, digits, dashes."""
    return re.sub(r"[^a-z0-9]+", "-", profile.name.lower())[:40].strip("-") or "profile"


def _name(profile: Profile) -> str:
    return f'"{harmless(profile.name)}"'
