"""When a sync that is under way will end, from its own progress.

The kernel's `finish=` knows the last half minute alone: neither that hard disks are slower further
inside, nor how sure it is.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from autotune.measure.sync_progress import Progress, SyncEnd
from autotune.problem.figure import SPREADS_95
from autotune.stats.steady_state import rate
from autotune.sync_forecast.platter import HELD_SHARE, Platter, assumed, flat
from autotune.system import sysfs
from autotune.system.array import Array, Media
from autotune.system.sync import SHUT_KIB, counted_for_each

WATCH_S = 30.0
TICK_S = 1.0
SLOWEST_INSIDE = 0.45
APART = 0.03
"""The spread of what the hours to come add to that of the half minute that was seen."""


@dataclass(frozen=True)
class Running:
    """A sync that is under way: what it is, how far it is (0 to 1), how fast (of each member), and
    when it will be over, in seconds from now, with the bounds that hold in 95 % of cases if the
    load stays."""

    action: str
    share: float
    kib_s: float
    left_s: float
    low_s: float
    high_s: float
    skips: bool
    """Whether a bitmap lets it skip what is alike, so that it may end sooner by any amount."""


Look = tuple[float, int, float, int]
"""When, in seconds; the KiB that were synced since the first one; the share that is done, be it
skipped; and the KiB in all, as /proc/mdstat counts them."""


@dataclass(frozen=True)
class Watched:
    """What was seen of a sync; whether it has ended by now, and if so whether before its end."""

    action: str
    looks: Sequence[Look]
    over: bool = False
    interrupted: bool = False
    guarded: bool = False
    """Whether `sync_speed_max` was what a guard holds a sync with, at any look: it opens and shuts
    that several times a second."""


def watch(
    array: Array, action: str, tell: Callable[[float], None], seconds: float = WATCH_S
) -> Watched:
    """Look at the position of the sync that is under way each second, to its end at the most.
    `tell` hears the share of the time that has passed."""
    seen: list[Look] = []
    guarded = False
    outcome, progress = SyncEnd(dataclasses.replace(array, sync_action=action)), Progress(array)
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        tell(passed / seconds)
        done_kib = progress.look()
        if sysfs.read_or(array.md / "sync_action", "idle") != action:
            return Watched(action, seen, over=True, interrupted=outcome.interrupted)
        outcome.look()
        limit = sysfs.read_or(array.md / "sync_speed_max", "")
        guarded = guarded or limit.split(" ")[0] == str(SHUT_KIB)
        if progress.getting_on:
            seen.append((time.monotonic(), done_kib, progress.share, progress.size_kib))
        time.sleep(TICK_S)
    return Watched(action, seen, guarded=guarded)


def judge(array: Array, watched: Watched, known: Platter | None) -> Running | None:
    """What was seen of a sync says so; None if it did not move. `known`: the curve of the platter,
    if a forecast has measured it."""
    seen = watched.looks
    steps = [(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(seen)]
    found = rate([float(kib) for _, kib in steps], [s for s, _ in steps]) if steps else None
    if found is None:
        return None
    *_, place, size = seen[-1]
    limit = int(sysfs.value(array.md / "sync_speed_max"))
    held = watched.guarded or found.value >= HELD_SHARE * limit
    likely, fast, slow = _curves(array.media, place, found.value, held, known)
    most = found.value if held else math.inf
    spread = math.exp(SPREADS_95 * math.hypot(found.spread, APART))
    return Running(
        watched.action,
        place,
        found.value / counted_for_each(array, watched.action),
        likely.seconds(size, most, place),
        fast.seconds(size, most, place) / spread,
        slow.seconds(size, most, place) * spread,
        sysfs.read_or(array.md / "bitmap/location", "none") != "none",
    )


def _curves(
    media: Media, place: float, kib_s: float, held: bool, known: Platter | None
) -> tuple[Platter, Platter, Platter]:
    """The likely curve from here on, and the fastest and slowest possible one. What a limit holds
    says only that the disks are no slower."""
    if known is not None:
        each = known.seen(place, kib_s, held)
        return each, each, each
    level = flat(kib_s)
    if media is not Media.HDD:
        return level, level, level
    # A member may be a partition, and then as fast at its end.
    likely, slow = assumed(1.0), assumed(1.0, SLOWEST_INSIDE)
    return level if held else likely.through(place, kib_s), level, slow.through(place, kib_s)
