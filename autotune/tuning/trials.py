"""One trial after the other: apply a setting, measure what it can move, store what it showed."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from autotune.errors import InfeasibleError, MeasurementError
from autotune.knobs import read_setting
from autotune.knobs.stripe_cache import stripes
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
from autotune.problem.course import Course
from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import broken_ceilings, gain
from autotune.problem.setting import Setting
from autotune.problem.trial import ROLES, Status
from autotune.results.proof import BASELINE, WINNER
from autotune.safety.apply import apply
from autotune.safety.watch import Watch
from autotune.stats.drift import Anchor, is_moving
from autotune.store import TrialRecord
from autotune.tuning import resume
from autotune.tuning.early_stop import EarlyEnd
from autotune.tuning.prepare import BASELINE_TRIALS, Preparation
from autotune.tuning.relevance import is_movable, relevant
from autotune.tuning.time_left import expected_left_s, plan_of
from autotune.tuning.time_spent import APPLYING, MEASURING, RAMP, STARTING, STORING, WARMING, Spent

if TYPE_CHECKING:
    from autotune.store.database import Store

BROKEN_IN_A_ROW = 2
"""A measurement that breaks so often is a broken environment, not a bad setting."""
WARM_UP_S = 4.0
"""Of each load, after it has settled, if it is measured for longer."""


class Reporter(Protocol):
    """Who follows a run."""

    def step(self, text: str) -> None:
        """A new part of the run begins."""

    def notice(self, text: str) -> None:
        """Something that must be shown, terminal or not."""

    def progress(self, what: str, share: float, left_s: float | None) -> None:
        """`share` (0 to 1) of `what` is done; `left_s`: seconds left of the whole run."""

    def trial(self, record: TrialRecord, gain: Estimate | None, holds: bool) -> None:
        """A trial has ended; `holds`: whether its figures are within all ceilings."""


SEARCHING = ("search", "check")
"""The roles of trials that are not measured beside others, so how they went on is not kept."""


def _courses(
    role: str, measured: Sequence[str], results: Sequence[PhaseResult]
) -> dict[str, Course]:
    """What the phases of a trial showed second by second, if that is worth its place."""
    if role in SEARCHING:
        return {}
    return {r.phase: r.course for r in results if r.phase in measured and r.course is not None}


class Trials:
    """The trials of one run. `records` are those done, `seconds` what each phase takes,
    `unsupported` the figures that never had enough samples, `saved_s` what was not measured because
    nothing could move it or the trial was hopeless, `grown_stripes` what the kernel made of the
    original stripe cache in a phase. `figures` have their ceilings once the
    baseline has told them. `deadline` is on the monotonic clock. `wrote` is the most that each
    phase has written, `written` counts all of it. `spent` says where the time went. `when_warm` is
    called between the warm-up and the first figure that counts. `long_s`: what a long load of both
    sides would take."""

    def __init__(
        self,
        preparation: Preparation,
        bench: Bench,
        watch: Watch,
        store: "Store",
        run: int,
        reporter: Reporter,
    ) -> None:
        self._prep = preparation
        self._bench = dataclasses.replace(bench, progress=self._progress)
        self._watch = watch
        self._store = store
        self._run = run
        self._reporter = reporter
        self._known: dict[object, PhaseResult] = {}
        self._label = ""
        self.deadline = time.monotonic() + preparation.options.time_s
        self.records: list[TrialRecord] = []
        self.unsupported: dict[str, None] = {}
        self._supported: set[str] = set()
        self.figures = preparation.figures
        self.saved_s = 0.0
        self.grown_stripes = 0
        self.written = bench.written
        self.wrote = dict.fromkeys((phase.name for phase in preparation.phases), 0)
        self._early = EarlyEnd()
        self.seconds = {p.name: p.expected_seconds for p in preparation.phases}
        self.spent = Spent()
        self.when_warm: Callable[[], object] = lambda: None
        self.long_s = 0.0
        self._ends_at = self.deadline

    def replay(self, records: Sequence[TrialRecord]) -> None:
        """Take up the stored trials of a run that was cut, as if they had just been measured."""
        for record in records:
            for result in resume.results(self._prep.phases, record):
                phase = next(p for p in self._prep.phases if p.name == result.phase)
                self._known[relevant(self._prep.knobs, phase, record.requested)] = result
                self.seconds[result.phase] = result.seconds
                self._note(result)
            self.deadline -= record.seconds
            self.records.append(record)
            self._tell(record)

    def resolved(self, figures: Sequence[Figure]) -> None:
        """Take note of the ceilings, which count for the trials until now too."""
        self.figures, self._early = tuple(figures), EarlyEnd()
        for record in self.records:
            self._early.learn(record, self.figures)

    def warm_up(self) -> None:
        """Run each load once as the array is, for no figure: the first touch of everything is
        slower, and as a figure it would be taken for noise."""
        self._label = "Warm-up"
        with self.spent.on(WARMING):
            for phase in self._prep.phases:
                if phase.load is None and not phase.check:
                    continue
                seconds = min(phase.min_seconds, WARM_UP_S)
                short = phase.model_copy(update={"min_seconds": seconds, "max_seconds": seconds})
                self._measured(short, 0, self._prep.baseline)
            self.when_warm()

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
            self.grown_stripes = max(self.grown_stripes, stripes(self._prep.array) or 0)

    @property
    def anchors(self) -> list[Anchor]:
        """The baseline's measurements through the run."""
        return [Anchor(r.middle_s, r.figures) for r in self.records if r.role == "baseline"]

    def count(self, role: str) -> int:
        """How many trials of this role there have been."""
        return sum(record.role == role for record in self.records)

    def _baseline_is_settled(self) -> bool:
        """Whether the baseline is known and stands still: what no knob can move either, such as
        the idle array, is then as it was."""
        return self.count("baseline") >= BASELINE_TRIALS and not is_moving(self.anchors)

    def run(
        self, role: str, setting: Setting, phases: tuple[Phase, ...], reuse: bool = False
    ) -> TrialRecord:
        """Apply and measure a setting, and store what it showed. With `reuse`, a phase that was
        measured at these values keeps its figures, unless that is so of all: who asks for a
        setting twice wants to know more of it."""
        started, began = datetime.now(UTC), time.monotonic()
        number = len(self.records) + 1
        results: list[PhaseResult] = []
        measured: list[str] = []
        status, reason, effective = Status.COMPLETE, "", dict(setting)
        self._label = f"Trial {number} ({ROLES.get(role, role)})"
        self._look_ahead(phases if role in (WINNER, BASELINE) else ())
        try:
            if not self._prep.allowed(setting):
                raise InfeasibleError("The setting is outside the RAM budget, so it is not tried.")
            # A change of somebody else's must be seen before it is written over.
            self._watch.look()
            self._watch.expect(None)
            with self.spent.on(APPLYING):
                applied = apply(
                    self._prep.array, self._prep.knobs, setting, self._bench.journal, self._watch
                )
            effective = dict(applied)
            self._watch.expect(applied)
            knobs = self._prep.knobs
            keys = [relevant(knobs, phase, setting) for phase in phases]
            carried = reuse and not all(key in self._known for key in keys)
            settled = role == "baseline" and self._baseline_is_settled()
            for phase, key in zip(phases, keys, strict=True):
                if key in self._known and (carried or (settled and not is_movable(knobs, phase))):
                    results.append(self._known[key])
                    self.saved_s += self.seconds[phase.name]
                    continue
                hopeless = self._early.judge(phase, results) if reuse else never_hopeless
                clear = self._early.clear(phase) if reuse else never_clear
                phase_began = time.monotonic()
                result = self._measured(phase, number, setting, hopeless, clear)
                self._note_time(time.monotonic() - phase_began, result)
                measured.append(phase.name)
                results.append(result)
                if result.hopeless:
                    status, reason = Status.ABORTED, result.hopeless
                    self.saved_s += self._unspent_s(phases, measured, result)
                    break
                self._known[key] = result
        except InfeasibleError as error:
            status, reason = Status.INFEASIBLE, str(error)
            self._watch.expect(read_setting(self._prep.array, self._prep.knobs))
        except OSError:
            # Of an array that is gone, say that.
            self._watch.look()
            raise
        record = TrialRecord(
            number,
            role,
            started,
            time.monotonic() - began,
            status,
            reason,
            dict(setting),
            effective,
            {name: e for result in results for name, e in result.figures.items()},
            tuple(measured),
            sum(result.bytes_written for result in results if result.phase in measured),
        )
        with self.spent.on(STORING):
            self._store.add_trial(self._run, record, _courses(role, measured, results))
        self.records.append(record)
        self._early.learn(record, self.figures)
        self._tell(record)
        return record

    def _note_time(self, seconds: float, result: PhaseResult) -> None:
        self.spent.add(MEASURING, result.measured_s)
        self.spent.add(RAMP, result.settling_s)
        self.spent.add(STARTING, seconds - result.measured_s - result.settling_s)

    def _look_ahead(self, proof: tuple[Phase, ...]) -> None:
        """Reckon when the run will end; `proof`: the phases of the proof under way."""
        plan = plan_of(self._prep, self.seconds, self.long_s, proof)
        now = time.monotonic()
        self._ends_at = now + expected_left_s(plan, self.records, self.deadline - now)

    def _tell(self, record: TrialRecord) -> None:
        before, shown = self.records[0].figures, record.figures
        if record.role in (WINNER, BASELINE):
            # It measured what its setting can move.
            shown = {**before, **shown}
        whole = record.status is Status.COMPLETE
        holds = whole and not broken_ceilings(self.figures, shown, before)
        self._reporter.trial(record, gain(self._prep.figures, shown, before), holds)

    def _unspent_s(
        self, phases: tuple[Phase, ...], measured: list[str], last: PhaseResult
    ) -> float:
        """What ending a trial with its last measured phase saved, as phases go."""
        rest = [p.name for p in phases[[p.name for p in phases].index(last.phase) + 1 :]]
        return max(0.0, self.seconds[last.phase] - last.seconds) + sum(
            self.seconds[name] for name in rest if name not in measured
        )

    def _measured(
        self,
        phase: Phase,
        number: int,
        setting: Setting,
        hopeless: Hopeless = never_hopeless,
        clear: Clear = never_clear,
    ) -> PhaseResult:
        """One phase, again if the measurement breaks. Raise MeasurementError if it keeps on."""
        for attempt in range(BROKEN_IN_A_ROW):
            try:
                seed = self._prep.options.seed + 1000 * number + attempt
                if phase.writes:
                    self.written.expect(self.wrote.get(phase.name, 0))
                result = measure(phase, self._bench, seed, hopeless, clear)
                self._note_growth(setting)
                break
            except MeasurementError:
                if attempt + 1 == BROKEN_IN_A_ROW:
                    raise
        if not result.hopeless:
            self.seconds[phase.name] = result.seconds
        self._note(result)
        return result

    def _progress(self, phase: Phase, share: float) -> None:
        left = max(0.0, self._ends_at - time.monotonic())
        self._reporter.progress(f"{self._label}: {phase.name}", share, left)
