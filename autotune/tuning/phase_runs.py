"""Running one phase after the other, and what is known of each by now."""

import dataclasses
import time
from collections.abc import Callable

from autotune.errors import MeasurementError
from autotune.knobs.stripe_cache import own_stripes
from autotune.measure.phase import (
    Bench,
    Clear,
    Hopeless,
    PhaseResult,
    measure,
    never_clear,
    never_hopeless,
)
from autotune.measure.workload import Phase
from autotune.problem.setting import Setting
from autotune.store import TrialRecord
from autotune.tuning import resume
from autotune.tuning.preparation import Preparation
from autotune.tuning.relevance import relevant
from autotune.tuning.time_spent import MEASURING, RAMP, STARTING, Spent

BROKEN_IN_A_ROW = 2
"""A measurement that breaks so often is a broken environment, not a bad setting."""
WARM_UP_S = 4.0
"""Of each load, after it has settled, if it is measured for longer."""


class PhaseRuns:
    """The phases of one run. By name, `seconds` is what each takes and `wrote` the most that it has
    written; `written` counts all of that. `unsupported` are the figures that never had enough
    samples, `grown_stripes` is what the kernel made of the original stripe cache in a phase."""

    def __init__(self, preparation: Preparation, bench: Bench, spent: Spent) -> None:
        self._prep, self._bench, self._spent = preparation, bench, spent
        self._known: dict[object, PhaseResult] = {}
        self._supported: set[str] = set()
        self.unsupported: dict[str, None] = {}
        self.grown_stripes = 0
        self.written = bench.written
        self.wrote = dict.fromkeys((phase.name for phase in preparation.phases), 0)
        self.seconds = {p.name: p.expected_seconds for p in preparation.phases}

    def known(self, phase: Phase, setting: Setting) -> PhaseResult | None:
        """What it showed at these values of all that can move it; None if that was not measured."""
        return self._known.get(relevant(self._prep.knobs, phase, setting))

    def take_up(self, record: TrialRecord) -> None:
        """Know what a stored trial showed, as if it had just been measured."""
        for result in resume.results(self._prep.phases, record):
            phase = next(p for p in self._prep.phases if p.name == result.phase)
            self._know(phase, record.requested, result)
            self.seconds[result.phase] = result.seconds
            self._note(result)

    def warm_up(self, learn: Callable[[Phase, PhaseResult], object]) -> None:
        """Run each load once as the array is, for no figure: the first touch of everything is
        slower, and as a figure it would be taken for noise. `learn` is told what each showed."""
        for phase in self._prep.phases:
            if phase.load is None and not phase.check:
                continue
            seconds = min(phase.min_seconds, WARM_UP_S)
            short = phase.model_copy(update={"min_seconds": seconds, "max_seconds": seconds})
            baseline, bench = self._prep.baseline, self._bench
            learn(phase, self._measure(short, 0, baseline, never_hopeless, never_clear, bench))

    def run(
        self,
        phase: Phase,
        number: int,
        setting: Setting,
        hopeless: Hopeless,
        clear: Clear,
        is_grown: bool = False,
    ) -> PhaseResult:
        """Measure a phase in the trial of this number, whose setting is in force; again if the
        measurement breaks. `is_grown`: the stripe cache is as large as it will become. Raise
        MeasurementError if it keeps on."""
        began = time.monotonic()
        bench = dataclasses.replace(self._bench, grows=False) if is_grown else self._bench
        result = self._measure(phase, number, setting, hopeless, clear, bench)
        self._spent.add(MEASURING, result.measured_s)
        self._spent.add(RAMP, result.settling_s)
        self._spent.add(STARTING, time.monotonic() - began - result.measured_s - result.settling_s)
        if not result.hopeless:
            # Not of the warm-up: it runs shorter loads, and waits for the cache to grow. Nor of
            # what was clear soon: a proof measures to the end.
            if result.steady or result.measured_s >= phase.max_seconds:
                self.seconds[phase.name] = result.seconds
            self._know(phase, setting, result)
        return result

    def unspent_s(self, phases: tuple[Phase, ...], measured: list[str], last: PhaseResult) -> float:
        """What ending a trial with its last measured phase saved, as phases go."""
        rest = [p.name for p in phases[[p.name for p in phases].index(last.phase) + 1 :]]
        return max(0.0, self.seconds[last.phase] - last.seconds) + sum(
            self.seconds[name] for name in rest if name not in measured
        )

    def _know(self, phase: Phase, setting: Setting, result: PhaseResult) -> None:
        self._known[relevant(self._prep.knobs, phase, setting)] = result

    def _measure(
        self,
        phase: Phase,
        number: int,
        setting: Setting,
        hopeless: Hopeless,
        clear: Clear,
        bench: Bench,
    ) -> PhaseResult:
        for attempt in range(BROKEN_IN_A_ROW):
            try:
                seed = self._prep.options.seed + 1000 * number + attempt
                if phase.writes:
                    self.written.expect(self.wrote.get(phase.name, 0))
                result = measure(phase, bench, seed, hopeless, clear)
                self._note_growth(setting)
                break
            except MeasurementError:
                if attempt + 1 == BROKEN_IN_A_ROW:
                    raise
        self._note(result)
        return result

    def _note(self, result: PhaseResult) -> None:
        """What had enough samples once can be had on this array."""
        self.wrote[result.phase] = max(self.wrote.get(result.phase, 0), result.bytes_written)
        self._supported.update(result.figures)
        self.unsupported.update(dict.fromkeys(result.unsupported))
        for name in self._supported:
            self.unsupported.pop(name, None)

    def _note_growth(self, setting: Setting) -> None:
        """How far the stripe cache has grown by itself, under the original settings."""
        if setting == self._prep.baseline:
            self.grown_stripes = max(self.grown_stripes, own_stripes(self._prep.array) or 0)
