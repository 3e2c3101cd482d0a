"""What a guard says before and while it works: what its policy costs, whether its deadline is in
reach.

From a forecast if there is one, else from what the first minute shows.
"""

import math
import time
from collections.abc import Iterator
from datetime import datetime

from autotune.guard.feasibility import AT_LEAST
from autotune.guard.goals import CEILING, Goals, Promise
from autotune.guard.loop import GuardLoop
from autotune.guard.window import Window
from autotune.problem.figure import Estimate
from autotune.quantities import KIB, show_ends, show_latency, show_moment, show_rate, show_seconds
from autotune.sync_forecast.model import CHECK, REBUILD, RESYNC, Forecast
from autotune.sync_forecast.platter import HELD_SHARE, Platter
from autotune.system.array import Array
from autotune.system.sync import NAMES, counted_for_each

LONG_S = 7 * 86_400.0
"""A sync that will take longer at its pace is worth a word."""
FIRST_S = 45.0
_ACTIONS = {"recover": REBUILD, "resync": RESYNC}
_ELSE = "--finish-within, or guard_finish_within in the configuration, names another one"


def curve(array: Array, action: str, known: Forecast) -> Platter:
    """What the disks can do as /proc/mdstat counts."""
    platter, each = known.curve(_ACTIONS.get(action, CHECK)), counted_for_each(array, action)
    return Platter(platter.places, tuple(rate * each for rate in platter.kib_s))


class News:
    """What there is to say of one sync, each thing once."""

    def __init__(
        self,
        array: Array,
        action: str,
        goals: Goals,
        promise: Promise,
        known: Forecast | None,
        limit_kib: float = math.inf,
    ) -> None:
        """`limit_kib`: md's own, as it counts."""
        self._what = f"{NAMES.get(action, action)} of {array.device}"
        self._limit_kib = limit_kib / counted_for_each(array, action)
        self._action = _ACTIONS.get(action, CHECK)
        self._goals, self._promise, self._known = goals, promise, known
        self._began_s: float | None = None
        self._told_cost = self._told_deadline = self._told_long = False
        self.told_impossible = False
        self._told_share: float | None = None

    def before(self) -> Iterator[str]:
        """What it will cost, from the forecast; nothing without one."""
        known, promise = self._known, self._promise
        if known is None:
            return
        made = datetime.fromtimestamp(known.made_s).strftime("%Y-%m-%d")
        if promise.share is not None:
            kib_s = promise.share * min(known.full_kib_s, self._limit_kib)
            self._told_cost = True
            limit = kib_s if promise.share < 1 else self._limit_kib
            yield (
                f"Policy {self._goals.policy}: a whole {self._action} takes "
                f"{_times(known.time(self._action, limit))} while users are there"
                f"{_felt(known.p99(self._action, kib_s))}, by the forecast of {made}."
            )
        if promise.finish_s is not None and math.isfinite(promise.ceiling_ns):
            whole = self._under_the_ceiling(known)
            if whole is not None:
                yield (
                    f"By the forecast of {made}, a whole {self._action} under "
                    f"{show_latency(promise.ceiling_ns)} takes {_times(whole)}."
                )

    def _under_the_ceiling(self, known: Forecast) -> Estimate | None:
        """How long a whole one takes that keeps the p99 there; None if it is not known."""
        fast = known.speed_under(self._promise.ceiling_ns, self._action)
        return known.time(self._action, min(fast, self._limit_kib)) if fast is not None else None

    def of(self, window: Window) -> Iterator[str]:
        """What these seconds show that was not said yet."""
        if self._began_s is None:
            self._began_s = window.time_s
        yield from self._progress(window)
        if window.needed_kib is not None and not self._told_deadline and self._promise.binds:
            self._told_deadline = True
            yield self._deadline(window.needed_kib)
        if (
            not self._told_long
            and self._action != CHECK
            and window.time_s - self._began_s >= FIRST_S
            and (window.left_s or 0.0) > LONG_S
        ):
            self._told_long = True
            yield (
                f"At its pace the {self._what} takes {show_seconds(window.left_s or 0.0)} more, "
                "without full redundancy. A deadline (--finish-within), a larger ceiling or a "
                "least speed (--least) makes it faster."
            )
        if (
            self._promise.share is not None
            and not self._told_cost
            and window.time_s - self._began_s >= FIRST_S
            and window.left_low_s is not None
            and window.left_high_s is not None
        ):
            self._told_cost = True
            felt = f"; the p99 is {show_latency(window.p99_ns)} now" if window.p99_ns else ""
            low, high = show_seconds(window.left_low_s), show_seconds(window.left_high_s)
            spread = "" if low == high else f" if all users leave, {high} if they stay"
            yield (
                f"Policy {self._goals.policy}: the {self._what} will take {low} more{spread}{felt}."
            )

    def conflict(self, window: Window) -> Iterator[str]:
        """That the deadline cannot be met, or not together with the ceiling; once."""
        if window.impossible and not self.told_impossible:
            self.told_impossible = True
            yield self._impossible(window)

    def _deadline(self, needed_kib: float) -> str:
        """What the deadline asks of the sync, and what that costs if a forecast knows."""
        known = self._known
        felt = _felt(known.p99(self._action, needed_kib)) if known else ""
        if known and not felt and known.stopped_ns is not None:
            felt = f", with a p99 above {show_latency(known.stopped_ns)}"
        felt += ", by the forecast" if felt else ""
        text = (
            f"To be over by {self._at}, the {self._what} needs "
            f"{show_rate(needed_kib * KIB)} of each member{felt}."
        )
        return text if self._promise.asked else f"By default: {text[:1].lower()}{text[1:]} {_ELSE}."

    @property
    def _at(self) -> str:
        return show_moment(self._promise.finish_s or 0.0, self._began_s or time.time())

    def _progress(self, window: Window) -> Iterator[str]:
        """At each quarter of the way, for whoever reads only a log."""
        if self._told_share is None:
            self._told_share = window.share
        low_s, high_s = window.left_low_s, window.left_high_s
        quarter = math.floor(window.share * 4)
        if quarter <= math.floor(self._told_share * 4) or low_s is None or high_s is None:
            return
        self._told_share = window.share
        left = show_ends(show_seconds(low_s), show_seconds(high_s))
        yield f"The {self._what} is {window.share:.0%} done; {left} are left."

    def _impossible(self, window: Window) -> str:
        promise = self._promise
        at = self._at
        if window.needed_kib is None:
            low = window.left_low_s or 0.0
            end = show_moment(window.time_s + low, window.time_s)
            return (
                f"The {self._what} cannot be over by {at}: at full speed it takes "
                f"{show_seconds(low)} more, until {end}.{self._by_limit(window)} {self._follows()}"
            )
        ceiling = show_latency(promise.ceiling_ns)
        needed = show_rate(window.needed_kib * KIB)
        seen = (
            f"the p99 is {show_latency(window.p99_ns)}" if window.p99_ns else "the p99 is unknown"
        )
        if promise.first == CEILING:
            left = show_seconds(window.left_s) if window.left_s else "an unknown time"
            return (
                f"The {self._what} cannot be over by {at} with a p99 under {ceiling}: the deadline "
                f"needs {needed} of each member; under the ceiling it takes {left} more. "
                f"{self._follows()}"
            )
        return (
            f"The {self._what} cannot be over by {at} with a p99 under {ceiling}: at the {needed} "
            f"of each member that the deadline needs, {seen}.{self._instead(window)} "
            f"{self._follows()}"
        )

    def _by_limit(self, window: Window) -> str:
        """That the disks could do more."""
        if window.sync_bytes_per_s < HELD_SHARE * self._limit_kib * KIB:
            return ""
        return (
            f" Its sync_speed_max does not let it go faster than "
            f"{show_rate(self._limit_kib * KIB)} of each member; raise that, and guard it again."
        )

    def _instead(self, window: Window) -> str:
        """What the ceiling alone would make of it, if a forecast knows."""
        whole = self._under_the_ceiling(self._known) if self._known else None
        if whole is None:
            return ""
        left_s = whole.value * (1 - window.share)
        return f" Under the ceiling it would take about {show_seconds(left_s)} more."

    def _follows(self) -> str:
        if not self._promise.binds:
            return "The ceiling is kept (--if-impossible deadline would change that)."
        if math.isinf(self._promise.ceiling_ns):
            return "It goes at full speed."
        if not self._promise.asked:
            return f"The deadline is kept. {_ELSE}."
        return "The deadline is kept (--if-impossible ceiling would change that)."


def _times(estimate: Estimate) -> str:
    return show_ends(*map(show_seconds, estimate.interval))


def _felt(estimate: Estimate | None) -> str:
    if estimate is None:
        return ""
    return f", with a p99 of {show_ends(*map(show_latency, estimate.interval))}"


def waiting_behind(device: str, what: str, loop: GuardLoop) -> str:
    """That something which cannot wait has to wait for the sync, and what follows."""
    if loop.released:
        return (
            f"The {what} of {device} runs at full speed again, since {loop.behind}; whoever stops "
            f"the {what} makes that begin at once."
        )
    return (
        f"While the {what} of {device} is slowed down, {loop.behind}; a larger ceiling or a least "
        "speed (--least) brings both sooner to their end."
    )


def out_of_reach(device: str, what: str, promise: Promise, window: Window, loop: GuardLoop) -> str:
    """That the least pace does not hold the ceiling either, and what follows."""
    seen = f" ({show_latency(window.p99_ns)} of late)" if window.p99_ns is not None else ""
    text = (
        f"The p99 of {device} stays above {show_latency(promise.ceiling_ns)}{seen}, though its "
        f"{what} was slowed to {show_rate(AT_LEAST * loop.least_bytes)} of each member or less for "
        f"{show_seconds(loop.feasibility.out_for_s)}; "
    )
    if loop.released:
        return (
            text + f"the {what} runs at full speed again, since the array lacks redundancy until "
            "it is over."
        )
    return text + f"the {what} stays that slow, so raise the ceiling or stop the {what}."
