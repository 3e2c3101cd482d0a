"""What was measured at some speeds, and what it says of all others. Pure, and light: a guard that
waits for months loads it."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from autotune.problem.figure import Estimate
from autotune.sync_forecast.isotonic import between, rising
from autotune.sync_forecast.platter import Platter
from autotune.system.array import PARITY
from autotune.system.sync import FLOOR_KIB

LARGEST = 2.5e11
"""No size or speed is above this, and no date later (in seconds)."""
CHECK, REBUILD, RESYNC = "check", "rebuild", "resync"
ACTIONS = (CHECK, REBUILD, RESYNC)
MOST_SHARE = 0.45
APART = {CHECK: 0.02, REBUILD: 0.06, RESYNC: 0.06}
"""The spread by which the times of a whole sync differ from those that a few places tell: only the
check is what was measured, the others write too."""
P99_APART = {CHECK: 0.06, REBUILD: 0.22, RESYNC: 0.08}
"""Likewise of a p99: a degraded array reads the member that it lacks from all others. Without RAID
10, rebuilds were 0.69 to 1.26 times what this tells (`benchmarks/README.md`)."""
BEYOND = 1.02
"""What is so many times as fast as the fastest that was measured is another speed."""
APART_PAIR, P99_APART_PAIR = 0.2, 0.35
"""`APART` and `P99_APART` for a rebuild of RAID 10, which copies one member while a check compares
all: without a limit it took 0.95 to 1.47 times as long as this says (`benchmarks/README.md`)."""
PAIR_TIMES = 2.0
"""How many times as high the p99 of that is as a check's at the same speed of each member. A sync
of RAID 10 lets all requests of the array wait for its turn, which in a rebuild is longer: 1.8 times
on hard disks, 2.5 times on SSDs (`make bench-raid10`)."""


@dataclass(frozen=True)
class SpeedPoint:
    """What was felt at one speed of the sync. Latencies in ns; None without requests enough."""

    kib_s: float
    """Of each member, as it was reached; 0 is the array without a sync."""
    p50: Estimate | None
    p99: Estimate | None
    samples: int


@dataclass(frozen=True)
class Forecast:
    """What a short check showed of an array. All speeds are of each member, in KiB/s."""

    device: str
    uuid: str
    level: str
    raid_disks: int
    media: str
    made_s: float
    """Since the epoch."""
    seconds: float
    """How long it took."""
    member_kib: int
    limit_kib_s: float
    """The limit that was found, as md counts."""
    platter: Platter
    places_measured: bool
    """Whether the curve of the platter is measured, or only its height."""
    rate_spread: float
    points: tuple[SpeedPoint, ...]
    """By speed, from 0 on; the last one is full speed, unless the ceiling was passed before."""
    source: str
    """Where latencies come from: "accounting" or "probe"."""
    busy: bool
    """Whether anybody used the array."""
    users_share: float = 0.0
    """Of the disks' time, what the users took before the check."""
    stopped_ns: float | None = None
    """The ceiling that ended it before full speed, if one did."""
    host: str = ""
    """The machine; "" if an earlier version kept it."""
    lab: bool = False
    counted: float = 1.0
    """How much md counts in a check, and limits, for each KiB of each member."""

    def limit(self, action: str) -> float:
        """What the limits that were found let an action do at the most, of each member."""
        return self.limit_kib_s / (1.0 if action == REBUILD else self.counted)

    @property
    def full_kib_s(self) -> float:
        """The mean over all places, when nothing holds the sync back."""
        return self.member_kib / self.platter.seconds(self.member_kib)

    @property
    def _cost(self) -> float:
        """Of what the disks could sync alone, what the users cost."""
        return min(self.users_share, MOST_SHARE)

    def curve(self, action: str) -> Platter:
        """What the disks can do for an action. In a rebuild of a parity level, all other members
        read for what is asked of the one that is not yet rebuilt: twice as much in all at first,
        in the end as much as ever."""
        if action != REBUILD or self.level not in PARITY:
            return self.platter
        ends = sorted({*self.platter.places, 0.0, 1.0})
        cost = self._cost
        return Platter(
            tuple(ends),
            tuple(self.platter.at(x) * (1 - (2 - x) * cost) / (1 - cost) for x in ends),
        )

    def time(self, action: str, kib_s: float = math.inf) -> Estimate:
        """How many seconds an action takes that is never faster than so much."""
        seconds = self.curve(action).seconds(self.member_kib, kib_s)
        # What a limit sets is known better than what disks give.
        free = kib_s > min(self.platter.kib_s)
        ours = self.rate_spread if free else self.rate_spread / 2
        apart = APART_PAIR if free and self._by_pair(action) else APART[action]
        return Estimate(seconds, math.hypot(ours, apart))

    def speed_for(self, seconds: float) -> float | None:
        """The speed at which a rebuild is done in so long; None if full speed is too slow."""
        return self.curve(REBUILD).limit_for(self.member_kib, seconds)

    def p99(self, action: str, kib_s: float) -> Estimate | None:
        """The foreground's p99 in ns while an action goes at such a speed. None if nothing is
        known of that, as above the speed at which a ceiling ended the check."""
        known = rising([(p.kib_s, p.p99) for p in self.points if p.p99 is not None])
        if not known:
            return None
        if self.stopped_ns is not None and min(kib_s, self.full_kib_s) > BEYOND * known[-1][0]:
            return None
        more, times = self._degraded(action)
        speed = min(kib_s, self.full_kib_s)
        found = between(known, speed + more)
        if action == REBUILD and self.level in PARITY:
            # A limit spares its users less than those of a check, as was measured: at half speed
            # it is half way, in logs, to what full speed costs (benchmarks/README.md).
            found = _towards(found, between(known, self.full_kib_s + more), speed / self.full_kib_s)
        apart = P99_APART_PAIR if self._by_pair(action) else P99_APART[action]
        felt = max(times * found.value, known[0][1].value)
        return Estimate(felt, math.hypot(found.spread, apart))

    def _by_pair(self, action: str) -> bool:
        """Whether an action works on two members alone."""
        return action == REBUILD and self.level == "raid10"

    def _degraded(self, action: str) -> tuple[float, float]:
        """What a member that is missing adds to a p99: as much as so many KiB/s more of a check,
        and so many times (for a tail that falls as an exponential). On a parity level all others
        read for it, and a read of it waits for the slowest of them. That is of the beginning of a
        rebuild, where most of the slowest requests are."""
        if self._by_pair(action):
            return 0.0, PAIR_TIMES
        if action != REBUILD or self.level not in PARITY:
            return 0.0, 1.0
        more = self._cost / (1 - self._cost) * self.full_kib_s
        return more, 1 + math.log(1 + (self.raid_disks - 2) / self.raid_disks) / math.log(100)

    def speed_under(self, ceiling_ns: float, action: str) -> float | None:
        """The highest speed of an action at which the p99 is likely to be no more than a ceiling;
        None if none that a limit can set is, or nothing is known."""

        def holds(kib_s: float) -> bool:
            felt = self.p99(action, kib_s)
            return felt is not None and felt.value <= ceiling_ns

        low, high = float(FLOOR_KIB), self.full_kib_s
        if holds(high):
            return high
        if not holds(low):
            return None
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    @property
    def knee(self) -> SpeedPoint | None:
        """The point with the most speed for its p99 ("power", Kleinrock 1979): beyond it each
        further MB/s costs more latency than before. None if fewer than three are known."""
        known = [p for p in self.points if p.p99 is not None and p.kib_s > 0]
        if len(known) < 3:
            return None

        def power(point: SpeedPoint) -> float:
            # As it is told: the fastest, unless something stopped it, stands for full speed.
            full = point is self.points[-1] and self.stopped_ns is None
            speed = self.full_kib_s if full else point.kib_s
            felt = self.p99(CHECK, speed)
            return speed / felt.value if felt else 0.0

        return max(known, key=power)

    def document(self) -> dict[str, Any]:
        """As it is stored: what JSON has."""
        return asdict(self)


def _towards(start: Estimate, end: Estimate, share: float) -> Estimate:
    """So far of the way, in logs."""
    value = start.value ** (1 - share) * end.value**share
    return Estimate(value, start.spread * (1 - share) + end.spread * share)


def from_document(document: Mapping[str, Any]) -> Forecast:
    """What `document` gave. Raise ValueError, TypeError or KeyError if it is something else."""
    fields = dict(document)
    fields["platter"] = Platter(
        *(tuple(map(float, fields["platter"][name])) for name in ("places", "kib_s"))
    )
    fields["points"] = tuple(_point(each) for each in fields["points"])
    found = Forecast(**fields)
    _refuse_nonsense(found)
    return found


def _refuse_nonsense(forecast: Forecast) -> None:
    for each in dataclass_fields(Forecast):
        value = getattr(forecast, each.name)
        if each.type in (str, bool) and not isinstance(value, each.type):
            raise TypeError(f"{each.name} is {value!r}")
        if each.type in (int, float) and not 0 <= value < LARGEST:
            raise ValueError(f"{each.name} is {value!r}")
    ceiling_ns = forecast.stopped_ns
    if not forecast.member_kib or (ceiling_ns is not None and not 0 < ceiling_ns < LARGEST):
        raise ValueError(f"{forecast.member_kib} and {ceiling_ns} are no size and ceiling")


def _point(document: Mapping[str, Any]) -> SpeedPoint:
    return SpeedPoint(
        float(document["kib_s"]),
        _latency(document["p50"]),
        _latency(document["p99"]),
        int(document["samples"]),
    )


def _latency(document: Mapping[str, Any] | None) -> Estimate | None:
    if document is None:
        return None
    found = Estimate(float(document["value"]), float(document["spread"]))
    if not (0 < found.value < LARGEST and 0 <= found.spread < math.inf):
        raise ValueError(f"{found} is no latency")
    return found
