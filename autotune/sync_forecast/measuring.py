"""A forecast from one short check on the live array, at some speeds and places.

First some seconds at full speed, which the others are shares of. Then from slow to fast: as soon
as a ceiling is passed beyond doubt, nothing faster is tried. How fast the disks are is measured
without the probe, which would take its share of a hard disk.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autotune.errors import MeasurementError, RefusalError, StoppedError, UsageError
from autotune.knobs.sync_speed import SyncSpeedMax
from autotune.measure.foreground import PROBE, Foreground
from autotune.preflight import check_schedule, checks
from autotune.problem.figure import Estimate
from autotune.safety.apply import journaled_paths
from autotune.safety.deferred_restore import settle
from autotune.safety.guardian import guarded
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.watch import Watch
from autotune.sync_forecast.bench import KNOBS, RAMP_S, CheckBench, CheckFigures, probe_iops
from autotune.sync_forecast.model import Forecast, SpeedPoint
from autotune.sync_forecast.platter import Platter, assumed, flat, measured
from autotune.sync_forecast.user_latency import felt
from autotune.system.array import Array, Media
from autotune.system.stack import read_stack

LEAST_S, MOST_S = 180.0, 300.0
LEAST_STEP_S = 3.0
SHARES = (0.08, 0.2, 0.4, 0.7)
"""Of full speed, the speeds that are tried beside it."""
MIDDLE = 0.5
"""The place at which latencies are measured: neither the fastest nor the slowest of the disks."""
PLACES = (0.0, 0.3, 0.6, 0.9)
FIRST_S, PLACE_S = 4.0, 5.0
CHANGE_S = 1.5
"""What starting and ending a check takes, beside its ramp."""
PLACES_S = len(PLACES) * (PLACE_S + RAMP_S + CHANGE_S)
UNKNOWN_SPREAD = 0.1


@dataclass(frozen=True)
class ForecastOptions:
    """`ceiling_ns`: the p99 that users have to be spared more than; infinite without one."""

    state_dir: Path
    ceiling_ns: float
    seconds: float
    notice: Callable[[str], None]
    progress: Callable[[str, float, float | None], None]


def check_time(seconds: float) -> None:
    """Raise UsageError if a forecast may not take so long, or cannot."""
    if not LEAST_S <= seconds <= MOST_S:
        raise UsageError(
            f"A forecast takes {LEAST_S / 60:.0f} to {MOST_S / 60:.0f} minutes; give --time such a "
            "value."
        )


def forecast(array: Array, options: ForecastOptions) -> Forecast:
    """Measure an array that does not sync; what was set is put back.

    Raise RefusalError if no check may run now, StoppedError if something more important comes,
    MeasurementError if the check does not get on.
    """
    findings = checks.check(array, read_stack(array), writes=False)
    for text in checks.refusals(findings):
        raise RefusalError(text)
    why = check_schedule.skipped(array.root, datetime.now().astimezone(), options.seconds)
    if why is not None:
        raise RefusalError(why)
    for finding in findings:
        options.notice(finding.message)
    began, path = time.monotonic(), journal_path(options.state_dir, array.uuid)
    with lock(array, path):
        settle(path, array.root)
        watch = Watch(array, KNOBS)
        journaled = journaled_paths(array, KNOBS)
        with (
            watch.signals.caught(options.notice),
            guarded(new_journal(path, array.uuid, array.device, journaled), options.notice) as by,
        ):
            watch.rely_on(by)
            bench = CheckBench(array, by.journal, watch, options.ceiling_ns)
            try:
                return _Steps(array, bench, options, began).run()
            except OSError:
                if array.md.is_dir():
                    raise
                raise StoppedError(f"Stopped: {array.device} was stopped.") from None


class _Steps:
    """The measurements, one after the other."""

    def __init__(
        self, array: Array, bench: CheckBench, options: ForecastOptions, began_s: float
    ) -> None:
        self._array, self._bench, self._options = array, bench, options
        self._scale = bench.size_kib / bench.member_kib
        self._began_s = began_s
        self._place_cost_s = PLACE_S + RAMP_S + CHANGE_S

    def _step_s(self, steps: int) -> float:
        """How long the next of so many equal steps may be, if all are to be done in time: what took
        longer before, on a busy machine, is saved later."""
        rest_s = self._options.seconds - self._passed_s - (PLACES_S if self._by_place else 0.0)
        return max(LEAST_STEP_S, rest_s / steps - RAMP_S - CHANGE_S)

    @property
    def _passed_s(self) -> float:
        return time.monotonic() - self._began_s

    @property
    def _by_place(self) -> bool:
        return self._array.media is Media.HDD

    def run(self) -> Forecast:
        bench, options = self._bench, self._options
        self._say("looking for users")
        busy, source, share = bench.users()
        probe = probe_iops(self._array) if source == PROBE else None
        idle = self._idle(probe)
        at_first = self._at_first(probe, busy)
        first = self._rate(at_first)
        points, stopped = self._by_speed(first.value, probe, at_first.over)
        if at_first.over and not stopped:
            points, stopped = [*points, self._point(at_first, first.value)], True
        platter, spread, known = self._curve(first, points, stopped)
        return Forecast(
            self._array.device,
            self._array.uuid,
            self._array.level,
            self._array.raid_disks,
            self._array.media.value,
            time.time(),
            self._passed_s,
            bench.member_kib,
            float(bench.found["sync_speed_max"]),
            platter,
            known,
            spread,
            tuple(sorted((idle, *points), key=lambda point: point.kib_s)),
            source,
            busy,
            share,
            options.ceiling_ns if stopped else None,
            counted=self._scale,
        )

    @property
    def _top(self) -> float:
        """A limit that holds no disk of its kind."""
        return float(SyncSpeedMax().choices(self._array, 0)[-1]) * self._scale

    def _idle(self, probe: int | None) -> SpeedPoint:
        """What users feel without a sync. Raise RefusalError if that is above the ceiling."""
        self._say("requests without a sync")
        with Foreground(self._array, self._options.ceiling_ns, probe) as foreground:
            # One of these, those by speed, and the short first check.
            seen = self._bench.idle(self._step_s(len(SHARES) + 3), foreground)
        if seen.over:
            raise RefusalError(
                "The p99 is above the ceiling without any sync, so none is tried; give a higher "
                "one with --p99-ceiling."
            )
        return self._point(seen, 0.0)

    def _at_first(self, probe: int | None, busy: bool) -> CheckFigures:
        """A check at full speed. Users feel it no longer than it takes to know that speed, if it
        passes the ceiling."""
        self._say("the speed of the disks")
        self._bench.limit(self._top)
        if not busy or math.isinf(self._options.ceiling_ns):
            return self._bench.check(0.0, FIRST_S)
        with Foreground(self._array, self._options.ceiling_ns, probe) as foreground:
            return self._bench.check(0.0, FIRST_S, foreground, rated=True)

    def _by_speed(
        self, first_kib: float, probe: int | None, full_is_over: bool
    ) -> tuple[list[SpeedPoint], bool]:
        """What users feel at each speed, and whether the ceiling ended that. `full_is_over`: full
        speed need not be tried again."""
        shares = SHARES if full_is_over else (*SHARES, None)
        points: list[SpeedPoint] = []
        with Foreground(self._array, self._options.ceiling_ns, probe) as foreground:
            for done, part in enumerate(shares):
                limit = self._top if part is None else part * first_kib * self._scale
                self._say("a check at full speed" if part is None else f"{part:.0%} of the speed")
                self._bench.limit(limit)
                step_s = self._step_s(len(SHARES) + 1 - done)
                seen = self._bench.check(MIDDLE, step_s, foreground)
                if seen.over:
                    # Too soon for a speed, perhaps.
                    kib_s = seen.kib_s.value if seen.kib_s is not None else limit
                    return [*points, self._point(seen, kib_s / self._scale)], True
                points.append(self._point(seen, self._rate(seen).value))
        return points, False

    def _curve(
        self, first: Estimate, points: Sequence[SpeedPoint], stopped: bool
    ) -> tuple[Platter, float, bool]:
        """How fast the disks are from place to place, the spread of that, and whether it was
        measured; else it is supposed."""
        if not self._by_place:
            # The first seconds are short; those at full speed have their probe.
            return flat(max(first.value, points[-1].kib_s)), first.spread, not stopped
        rates: list[Estimate] = []
        if not stopped:
            self._bench.limit(self._top)
        # On a busy machine each may take longer than planned.
        for place in () if stopped else PLACES:
            began_s = self._passed_s
            if began_s + self._place_cost_s > MOST_S:
                break
            self._say(f"the speed at {place:.0%} of the disks")
            rates.append(self._rate(self._bench.check(place, PLACE_S)))
            self._place_cost_s = self._passed_s - began_s
        if len(rates) < len(PLACES):
            return assumed(first.value), UNKNOWN_SPREAD, False
        spread = math.hypot(*(each.spread for each in rates)) / len(rates)
        return measured(PLACES, [each.value for each in rates]), max(spread, 0.01), True

    def _rate(self, seen: CheckFigures) -> Estimate:
        """In KiB/s of each member."""
        if seen.kib_s is None:
            raise MeasurementError(
                f"The check of {self._array.device} hardly moved, so nothing can be foretold; look "
                "at /proc/mdstat."
            )
        return Estimate(seen.kib_s.value / self._scale, seen.kib_s.spread)

    def _point(self, seen: CheckFigures, kib_s: float) -> SpeedPoint:
        samples = sum(second.sampled for second in seen.seconds)
        return SpeedPoint(kib_s, felt(seen.seconds, 50), felt(seen.seconds, 99), samples)

    def _say(self, what: str) -> None:
        left_s = max(self._options.seconds - self._passed_s, 0.0)
        self._options.progress(what, 1 - left_s / self._options.seconds, left_s)
