"""What a guard has promised: a ceiling, a deadline, a share of the disks; and the pace for that.

Pure: what remains, the deadline, the ceiling and the p99 of now come in, a pace or a sentence comes
out.
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from autotune.errors import UsageError
from autotune.sync_forecast.platter import Platter
from autotune.system.sync import LONGEST_S, REBUILDS

POLICIES = {"foreground": 0.15, "balanced": 0.4, "rebuild": 1.0}
"""Of what the disks can sync beside the users, how much the sync gets while there are any."""
RESERVE = 0.05
"""Of the whole time, what is kept back at its end: the users to come may be more."""
REBUILD_S = 7 * 86_400.0
"""A recovery or resync under a ceiling is to be over within so long if nobody names a deadline: at
md's slowest, a disk of 20 TB takes 226 days, all of them without full redundancy."""
DEADLINE, CEILING = "deadline", "ceiling"
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FORMS = "06:00, Mon 06:00 or 2026-11-30 06:00"


@dataclass(frozen=True)
class Promise:
    """`ceiling_ns` is infinite without a ceiling. `finish_s`: when the sync is to be over, in
    seconds since the epoch; it is planned to be so `spare_s` before. `share`: what a policy gives
    it. `first`: which goes before the other, DEADLINE or CEILING, if both cannot be kept.
    `by_clock`: whether the deadline is a moment of the clock, wherever that is set, or the end of a
    span. `asked`: whether somebody has named it."""

    ceiling_ns: float = math.inf
    finish_s: float | None = None
    share: float | None = None
    first: str = DEADLINE
    spare_s: float = 0.0
    by_clock: bool = False
    asked: bool = True

    @property
    def binds(self) -> bool:
        """Whether the pace follows the deadline: there is one, and no ceiling goes before it."""
        return self.finish_s is not None and (self.first == DEADLINE or math.isinf(self.ceiling_ns))


@dataclass(frozen=True)
class Goals:
    """What was asked for, before a sync is there: the deadline may be so many seconds after its
    start, or a moment as `parse_moment` reads it. `first` is "" if nobody said. `rebuild_s`: how
    long a recovery or resync under the ceiling may take if there is no deadline; None if nobody
    said, which is REBUILD_S then, of what may last longer."""

    ceiling_ns: float = math.inf
    within_s: float | None = None
    by: str | None = None
    policy: str | None = None
    first: str = ""
    rebuild_s: float | None = None

    def promise(self, action: str, now: datetime, slowest_s: float = 0.0) -> Promise:
        """What is promised for a sync that begins to be guarded now, as md names its action.
        `slowest_s`: how long it takes at the least speed it is ever slowed to."""
        within_s, asked = self.within_s, True
        if within_s is None and self.by is None and self._may_last(action):
            within_s = self.rebuild_s
            if within_s is None and slowest_s > REBUILD_S:
                within_s, asked = REBUILD_S, False
        finish_s = now.timestamp() + within_s if within_s is not None else None
        if self.by is not None:
            finish_s = parse_moment(self.by, now).timestamp()
        # Without its redundancy, an array is at a greater risk than its users' patience.
        first = self.first or (DEADLINE if action in REBUILDS else CEILING)
        share = POLICIES[self.policy] if self.policy is not None else None
        spare_s = RESERVE * (finish_s - now.timestamp()) if finish_s is not None else 0.0
        by_clock = self.by is not None
        return Promise(self.ceiling_ns, finish_s, share, first, spare_s, by_clock, asked)

    def _may_last(self, action: str) -> bool:
        """Whether a ceiling alone says how long an array goes without its redundancy."""
        return math.isfinite(self.ceiling_ns) and self.policy is None and action in REBUILDS


@dataclass(frozen=True)
class Remains:
    """What a sync has still to do: from `place` (0 to 1) to the end of `size_kib`, over disks that
    are as fast as `free` says beside their users, under md's own `limit_kib`. In what /proc/mdstat
    counts."""

    size_kib: float
    place: float
    free: Platter
    limit_kib: float = math.inf

    def seconds(self, kib_s: float = math.inf) -> float:
        """How long it takes at no more than a pace."""
        if self.place >= 1:
            return 0.0
        return self.free.seconds(self.size_kib, max(min(kib_s, self.limit_kib), 1.0), self.place)


def needed_kib(promise: Promise, remains: Remains, now_s: float) -> float | None:
    """The least pace that meets the deadline: 0 without one, None if it is lost at full speed."""
    if promise.finish_s is None:
        return 0.0
    left_s = promise.finish_s - now_s
    planned_s = left_s - promise.spare_s
    planned = remains.free.limit_for(remains.size_kib, planned_s, remains.place)
    if planned is not None and planned <= remains.limit_kib:
        return planned
    # Full speed may still do what no reserve is left for.
    full = min(max(remains.free.kib_s), remains.limit_kib)
    return full if remains.seconds() <= left_s else None


def least_kib(promise: Promise, needed: float | None, floor_kib: float) -> float:
    """The pace below which the sync is not held: that of the deadline, if that goes first. What is
    late already goes as fast as it can."""
    if not promise.binds:
        return floor_kib
    return math.inf if needed is None else max(needed, floor_kib)


def parse_moment(text: str, now: datetime) -> datetime:
    """The next moment that a text names: "06:00", "Mon 06:00", "2026-11-30 06:00", in local time.
    Raise UsageError if it is none of these, or lies in the past."""
    words = text.strip().lower().split()
    clock = re.fullmatch(r"(\d{1,2}):(\d{2})", words[-1]) if words else None
    found: datetime | None = None
    if clock and int(clock[1]) < 24 and int(clock[2]) < 60 and len(words) <= 2:
        at = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
        if len(words) == 1:
            found = at if at > now else at + timedelta(days=1)
        elif words[0][:3] in _DAYS:
            days = (_DAYS.index(words[0][:3]) - now.weekday()) % 7
            at += timedelta(days=days)
            found = at if at > now else at + timedelta(days=7)
        else:
            found = _on_a_day(words[0], at)
    if found is None or found <= now:
        raise UsageError(f'"{text}" is no time in the future; write it like {_FORMS}.')
    if (found - now).total_seconds() > LONGEST_S:
        raise UsageError(
            f'"{text}" is more than a year away; name a deadline that a sync can meet.'
        )
    return found


def _on_a_day(day: str, at: datetime) -> datetime | None:
    try:
        return datetime.combine(datetime.fromisoformat(day).date(), at.time())
    except ValueError:
        return None
