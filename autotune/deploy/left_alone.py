"""Settings that stay as they are, since a change of them would take something from others."""

from collections.abc import Iterable
from pathlib import Path

from autotune.deploy.shared_disks import left_to_another
from autotune.problem.profile import Profile
from autotune.system.array import Array
from autotune.system.cgroups import with_bfq_weights
from autotune.untrusted import plain


def left_alone(names: Iterable[str], array: Array, state_dir: Path) -> tuple[frozenset[str], str]:
    """Which of these settings are left as they are, and the sentences that say why, and how that
    ends, or ""."""
    names = tuple(names)
    left, said = left_to_another(names, array, state_dir)
    group = with_bfq_weights(array) if "scheduler" in {*names} - left else None
    if group is None:
        return left, said
    weights = (
        f"scheduler: left as found, since the control group {plain(group)} has weights for disks "
        f"of {array.device} (`IODeviceWeight=` of systemd), which the kernel forgets when bfq "
        "goes; take them away first if they do not matter."
    )
    return left | {"scheduler"}, f"{said} {weights}".strip()


def without_left_alone(profile: Profile, array: Array, state_dir: Path) -> tuple[Profile, str]:
    """The profile without what is left alone, and what says so, or ""."""
    left, said = left_alone(profile.knobs, array, state_dir)
    rest = {name: value for name, value in profile.knobs.items() if name not in left}
    return profile.model_copy(update={"knobs": rest}), said
