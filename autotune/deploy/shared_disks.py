"""What a disk of two arrays was set to before either of them had a profile."""

from autotune.knobs import by_name
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.system.array import Array


def found_first(
    before: Setting, array: Array, other: Array, theirs: Profile, they_found: Setting
) -> Setting:
    """`before` is what an array had before its profile. Of disks that it shares with another one
    that may be what `theirs`, the other's profile, had set there: then what they found counts."""
    if not set(array.disks) & set(other.disks):
        return before
    found = dict(before)
    for name, value in before.items():
        on_disks = set(by_name(name).paths(array)) & set(by_name(name).paths(other))
        if on_disks and theirs.knobs.get(name) == value and name in they_found:
            found[name] = they_found[name]
    return found
