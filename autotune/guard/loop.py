"""One sync under guard: the loop that looks, learns and opens or shuts the throttle."""

import time
from collections.abc import Callable

from autotune.guard.feasibility import AT_LEAST, Feasibility
from autotune.guard.goals import Promise
from autotune.guard.outlook import SyncOutlook
from autotune.guard.pace import WANTED, Pace, Share, first_pace
from autotune.guard.stripe_cache import StripeCache
from autotune.guard.throttle import IDLE_LOOK_S, Throttle
from autotune.guard.waiting import behind
from autotune.guard.window import Window
from autotune.measure.foreground import Foreground, Second
from autotune.measure.sync_progress import Progress, SyncEnd, running
from autotune.quantities import KIB
from autotune.sync_forecast.platter import TYPICAL_KIB_S, Platter, assumed, flat
from autotune.system import sysfs
from autotune.system.array import Array, Media
from autotune.system.sync import CHECKS, FLOOR_KIB, NAMES, REBUILDS, counted_for_each

WINDOW_S = 5.0
OVER_AFTER_S = 2.0
"""Between two members' recoveries, an array is idle for a moment."""
SETTLE_S = 2.0
"""As the throttle begins to work, requests end that have waited for the sync at full speed."""
DEPTH_S = 10.0
ENOUGH = 100
"""Of fewer requests a p99 is the slowest one."""


class GuardLoop:
    """Keeps one sync to what is promised, but to no less than `least_kib` of each member in a
    second, until it is over or `going` says no more. `known`: what the disks can do, if a forecast
    has measured it.

    A ceiling that the least pace does not hold is out of reach (`feasibility`). A sync that gives
    the array its redundancy back is then `released`: each hour that it takes longer is a greater
    risk than slow requests. Any other one stays at the least pace. A check or repair is also
    released when a recovery or replacement waits for its end (`behind`).
    """

    def __init__(
        self,
        array: Array,
        throttle: Throttle,
        promise: Promise,
        least_kib: float = FLOOR_KIB,
        known: Platter | None = None,
    ) -> None:
        self._array = array
        self._throttle = throttle
        self._ceiling_ns = promise.ceiling_ns
        self._each = each = counted_for_each(array, array.sync_action)
        """What md counts and limits for each KiB of a member. All that is told goes by members, all
        that is reckoned here as md does."""
        self._least_kib = max(least_kib * each, throttle.floor_kib, FLOOR_KIB)
        supposed = assumed(TYPICAL_KIB_S * each) if array.media is Media.HDD else flat(1.0)
        self.outlook = SyncOutlook(promise, self._least_kib, supposed, known, throttle.limit_kib)
        self.feasibility = Feasibility(promise.ceiling_ns, self._least_kib, WINDOW_S)
        self.released = False
        self.behind = ""
        """What waits for the end of this sync, as the rest of a sentence."""
        self._started_s = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        self._cache = StripeCache(array, throttle.journal)
        self._progress = Progress(array)
        self._outcome = SyncEnd(array)
        self._pace: Pace | Share | None = None
        self._paced = False
        self._free_kib = 0.0
        self._settled_s = 0.0
        self._deeper_s = 0.0
        self.windows = self.judged = self.over = self.few_over = 0

    @property
    def done_bytes(self) -> int:
        """How much of each member was synced under guard."""
        return round(self._progress.done_kib * KIB / self._each)

    def now_s(self) -> float:
        """Since the epoch, as the promise counts it: a span does not become longer or shorter when
        somebody sets the clock, and goes on while the machine sleeps."""
        if self.outlook.promise.by_clock:
            return time.time()
        return self._started_s + time.clock_gettime(time.CLOCK_BOOTTIME)

    @property
    def least_bytes(self) -> float:
        """Bytes of each member in a second, below which the sync is not held."""
        return self._least_kib * KIB / self._each

    def run(self, going: Callable[[], bool], on_window: Callable[[Window], None]) -> bool:
        """Guard until the sync is over, or a recovery takes the place of a check (True), or it is
        released, or `going`, asked all the while, says no (False).

        Raise StoppedError if somebody else sets what is moved here, MeasurementError if the probe
        breaks.
        """
        with Foreground(self._array, WANTED * self._ceiling_ns) as foreground:
            now = time.monotonic()
            second_at = window_at = seen_s = now
            second_kib = window_kib = self._progress.look()
            requests = 0
            # A disk may fail in the first second, too.
            self._outcome.look()
            while going():
                now = time.monotonic()
                done = self._progress.look()
                if self._paced and self._pace is not None:
                    self._throttle.keep(self._pace.kib, done, now)
                second = foreground.look(now)
                if second is not None:
                    requests += second.requests or 0
                    rate = (done - second_kib) / (now - second_at)
                    self._learn(foreground, second, rate, now)
                    second_at, second_kib = now, done
                    self._throttle.check()
                    if self.overtaken:
                        return True
                    self._outcome.look()
                    if running(self._array) or self._frozen:
                        seen_s = now
                    elif now - seen_s >= OVER_AFTER_S:
                        return True
                if now - window_at >= WINDOW_S:
                    passed = now - window_at
                    on_window(
                        self._window(foreground, (done - window_kib) / passed, requests / passed)
                    )
                    window_at, window_kib, requests = now, done, 0
                    if self.released:
                        return False
                if self._paced:
                    time.sleep(self._throttle.pause_s(done, self._free_kib))
                else:
                    time.sleep(IDLE_LOOK_S)
        return False

    @property
    def _frozen(self) -> bool:
        """Whether md holds a sync that it goes on with, as while a disk is added, which may have to
        spin up first."""
        rebuilds = self._array.sync_action in REBUILDS
        return rebuilds and sysfs.read_or(self._array.md / "sync_action", "idle") == "frozen"

    @property
    def overtaken(self) -> bool:
        """Whether a recovery has taken the place of the check that was to be guarded. It has other
        promises, and what is said of a check would be wrong of it."""
        action = sysfs.read_or(self._array.md / "sync_action", "idle")
        return self._array.sync_action in CHECKS and action in REBUILDS

    @property
    def interrupted(self) -> bool:
        """Whether the sync, which is over, was cut before its end."""
        return self._outcome.interrupted

    def _learn(self, foreground: Foreground, second: Second, rate_kib: float, now: float) -> None:
        held, self._throttle.held = self._throttle.held, False
        if not held:
            self._free_kib = max(rate_kib, 0.9 * self._free_kib)
        self.outlook.look(
            self._progress.size_kib, self._progress.share, rate_kib, held, self.now_s()
        )
        # A ceiling finds its pace by itself; a share is one of what was seen, and all of it needs
        # no pace.
        due = isinstance(self._pace, Share) and self.outlook.due
        if not foreground.busy or due or self.outlook.promise.share == 1.0:
            self._paced = False
            self._throttle.open()
            self._throttle.restore_depth()
            return
        if self._pace is None:
            outlook = self.outlook
            if rate_kib > 0 and (outlook.known or not outlook.needs_to_know):
                self._pace = first_pace(outlook.promise, self._least_kib, self._free_kib)
            if self._pace is None:
                return
        self._pace.hold(
            min(self.outlook.least_kib, self._throttle.limit_kib), self.outlook.free_kib
        )
        self._cache.shrink(now)
        if not self._paced:
            self._paced = True
            self._settled_s = now + SETTLE_S
            self._pace.forget()
        if now < self._settled_s:
            foreground.forget()
            return
        self._pace.learn(second, None if held else rate_kib)
        self._move_depth(second.slow, now)

    def _move_depth(self, slow: float, now: float) -> None:
        """Where the pace can do no more, the depth still can."""
        assert self._pace is not None
        if self._pace.kib > AT_LEAST * self._least_kib:
            self._throttle.restore_depth()
        elif self._pace.at_floor and slow > 0 and now - self._deeper_s >= DEPTH_S:
            self._throttle.halve_depth()
            self._deeper_s = now

    def _window(self, foreground: Foreground, rate_kib: float, iops: float) -> Window:
        percentile, samples = foreground.p99()
        self.windows += 1
        if percentile is not None and samples >= ENOUGH:
            self.judged += 1
            self.over += percentile.likely > self._ceiling_ns
        elif percentile is not None:
            self.few_over += percentile.at_least > self._ceiling_ns
        paced = self._pace.kib if self._paced and self._pace else None
        p99_ns = percentile.likely if percentile else None
        self.feasibility.look(paced, p99_ns)
        self.behind = behind(self._array)
        self.released = (self.feasibility.out_for_s > 0 and self._at_risk()) or (
            self.behind != "" and self._array.sync_action in CHECKS
        )
        self.outlook.judge(p99_ns, paced)
        left, needed = self.outlook.time_left(), self.outlook.needed_kib
        pace = paced if paced is not None else self._throttle.limit_kib
        return Window(
            self.now_s(),
            p99_ns,
            percentile.at_least if percentile else None,
            percentile.at_most if percentile else None,
            samples,
            foreground.source if foreground.busy else "none",
            rate_kib * KIB / self._each,
            round(min(pace, self._throttle.limit_kib) / self._each),
            iops if foreground.counted else None,
            self._progress.share,
            left.left_s,
            left.low_s,
            left.high_s,
            self.feasibility.out_for_s > 0,
            self.outlook.promise.finish_s,
            needed / self._each if needed else None,
            self.outlook.impossible,
            NAMES.get(self._array.sync_action, self._array.sync_action),
        )

    def _at_risk(self) -> bool:
        """Whether the array lacks redundancy until this sync is over, or a member that is to be
        replaced is still in use."""
        md = self._array.md
        degraded = sysfs.read_or(md / "degraded", "0") != "0"
        return degraded or sysfs.read_or(md / "sync_action", "idle") in ("resync", "recover")
