"""What a disk of two arrays was set to before either of them had a profile."""

from autotune.knobs import by_name
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.system.array import Array


def found_before_both(
    before: Setting, array: Array, other: Array, theirs: Profile, they_found: Setting
) -> Setting:
    """`before` is what an array had before its profile. Of disks that it shares with another one
    that may be what `theirs`, the other's profile, had set there: then what they found counts."""
    found = dict(before)
    for name, value in before.items():
        if theirs.knobs.get(name) == value and name in they_found and shares(name, array, other):
            found[name] = they_found[name]
    return found


def shares(name: str, array: Array, other: Array) -> bool:
    """Whether a setting of two arrays is one of a disk that both have."""
    return not set(by_name(name).paths(array)).isdisjoint(by_name(name).paths(other))
