"""One trial after the other: apply a setting, measure what it can move, store what it showed."""

import dataclasses
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from autotune.errors import InfeasibleError
from autotune.knobs import read_setting
from autotune.measure.phase import Bench, PhaseResult, never_clear, never_hopeless
from autotune.measure.workload import Phase
from autotune.problem.course import Course
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures
from autotune.problem.setting import Setting, Value
from autotune.problem.trial import ROLES, Status
from autotune.results.proof import PROOF_BASELINE
from autotune.safety.apply import apply
from autotune.safety.watch import Watch
from autotune.stats.drift import Anchor, is_moving
from autotune.store import TrialRecord
from autotune.tuning.early_stop import EarlyEnd
from autotune.tuning.grown_cache import GrownCache
from autotune.tuning.phase_runs import PhaseRuns
from autotune.tuning.preparation import (
    BASELINE_EVERY,
    BASELINE_TRIALS,
    WHILE_MOVING,
    Preparation,
)
from autotune.tuning.relevance import is_movable
from autotune.tuning.reporter import Reporter
from autotune.tuning.run_progress import RunProgress
from autotune.tuning.time_spent import APPLYING, STORING, WARMING, Spent

if TYPE_CHECKING:
    from autotune.store.database import Store

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
    """The trials of one run. `records` are those done, `phases` runs their phases, `saved_s` is
    what was not measured because nothing could move it or the trial was hopeless. `figures` have
    their ceilings once the baseline has told them. `deadline` is on the monotonic clock. `spent`
    says where the time went, `progress` tells the reporter. `when_warm` is called between the
    warm-up and the first figure that counts."""

    def __init__(
        self,
        preparation: Preparation,
        bench: Bench,
        watch: Watch,
        store: "Store",
        run: int,
        reporter: Reporter,
        began: float | None = None,
    ) -> None:
        """`began`: when the time of the run began, by the monotonic clock; None: now."""
        self._prep, self._watch = preparation, watch
        self._store, self._run = store, run
        began = time.monotonic() if began is None else began
        self.deadline = began + preparation.options.time_s
        self.progress = RunProgress(preparation, reporter)
        self._bench = dataclasses.replace(bench, progress=self.progress.phase)
        self.spent = Spent()
        self.phases = PhaseRuns(preparation, self._bench, self.spent)
        self.records: list[TrialRecord] = []
        self.figures = preparation.figures
        self.saved_s = 0.0
        self._early = EarlyEnd()
        self._grown_cache = GrownCache(self._apply, preparation.allowed)
        self.when_warm: Callable[[], object] = lambda: None

    def replay(self, records: Sequence[TrialRecord]) -> None:
        """Take up the stored trials of a run that was cut, as if they had just been measured."""
        for record in records:
            self.phases.take_up(record)
            self.deadline -= record.seconds
            self.records.append(record)
            self._tell(record)

    def set_ceilings(self, figures: Sequence[Figure], before: Figures) -> None:
        """Take note of the ceilings, which count for the trials until now too; `before` is what
        the original settings show."""
        self.figures, self._early = tuple(figures), EarlyEnd()
        self.progress.ceilings(self.figures, before)
        for record in self.records:
            self._early.learn(record, self.figures)

    def warm_up(self) -> None:
        """Let the array see each load once, before anything counts."""
        self.progress.label = "Warm-up"
        self._look_ahead("baseline")
        baseline = self._prep.baseline
        with self.spent.on(WARMING):
            self.phases.warm_up(
                lambda phase, shown: self._grown_cache.learn(phase, baseline, shown)
            )
            self.when_warm()

    @property
    def anchors(self) -> list[Anchor]:
        """The baseline's measurements through the run."""
        return [Anchor(r.middle_s, r.figures) for r in self.records if r.role == "baseline"]

    @property
    def originals(self) -> list[Anchor]:
        """The same, with those of proofs, which count for themselves otherwise."""
        roles = ("baseline", PROOF_BASELINE)
        done = [r for r in self.records if r.role in roles and r.status is Status.COMPLETE]
        return [Anchor(r.middle_s, r.figures) for r in done]

    def count(self, role: str) -> int:
        """How many trials of this role there have been."""
        return sum(record.role == role for record in self.records)

    @property
    def baseline_every(self) -> int:
        """After how many trials of the search the baseline comes back."""
        anchors = self.anchors
        return WHILE_MOVING if anchors and is_moving(anchors) else BASELINE_EVERY

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
        self.progress.label = f"Trial {number} ({ROLES.get(role, role)})"
        self._look_ahead(role)
        try:
            if not self._prep.allowed(setting):
                raise InfeasibleError(
                    "The combination is outside the RAM budget, so it is not tried."
                )
            effective = self._apply(setting)
            carried = reuse and any(self.phases.known(p, setting) is None for p in phases)
            settled = role == "baseline" and self._baseline_is_settled()
            for phase in phases:
                known = self.phases.known(phase, setting)
                stands = settled and not is_movable(self._prep.knobs, phase)
                if known is not None and (carried or stands):
                    results.append(known)
                    self.saved_s += self.phases.seconds[phase.name]
                    continue
                hopeless = self._early.judge(phase, results) if reuse else never_hopeless
                clear = self._early.clear(phase) if reuse else never_clear
                with self._grown_cache.before(phase, setting) as is_grown:
                    result = self.phases.run(phase, number, setting, hopeless, clear, is_grown)
                if not self._prep.live:
                    self._grown_cache.learn(phase, setting, result)
                measured.append(phase.name)
                results.append(result)
                if result.hopeless:
                    status, reason = Status.ABORTED, result.hopeless
                    self.saved_s += self.phases.unspent_s(phases, measured, result)
                    break
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

    def _look_ahead(self, role: str) -> None:
        """Reckon when the run will end, before a trial of this role."""
        self.progress.look_ahead(
            self.phases.seconds, self.records, self.deadline, role, self.baseline_every
        )

    def _apply(self, setting: Setting) -> dict[str, Value]:
        """Bring the array to a setting; return what took effect."""
        # A change of somebody else's must be seen before it is written over.
        self._watch.look()
        self._watch.expect(None)
        with self.spent.on(APPLYING):
            applied = apply(
                self._prep.array, self._prep.knobs, setting, self._bench.journal, self._watch
            )
        self._watch.expect(applied)
        return dict(applied)

    def _tell(self, record: TrialRecord) -> None:
        self.progress.trial(record, self.records[0])
