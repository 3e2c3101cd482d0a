"""One trial after the other: make an array of a shape, measure it, remove it."""

import dataclasses
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from autotune.design.shape import Shape
from autotune.design.slices import Slices
from autotune.design.space import moves
from autotune.errors import InfeasibleError, MeasurementError
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
from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, gain, limits
from autotune.problem.trial import Status
from autotune.stats.drift import Anchor
from autotune.store import TrialRecord
from autotune.tuning.early_stop import EarlyEnd
from autotune.tuning.phase_runs import BROKEN_IN_A_ROW, WARM_UP_S
from autotune.tuning.reporter import Reporter
from autotune.tuning.time_left import TIME_MARGIN

BASELINE = "baseline"
"""The role of the trials of the default, which all others are compared with."""
PROOF = "proof"


class Trials:
    """The trials of one design, `records`. `figures` have their ceilings once the baseline has told
    them. `deadline` is on the monotonic clock; `phase_seconds` is what each phase takes."""

    def __init__(
        self,
        slices: Slices,
        phases: Sequence[Phase],
        reporter: Reporter,
        deadline: float,
        seed: int = 0,
    ) -> None:
        self._slices, self._phases, self._reporter = slices, phases, reporter
        self._seed = seed
        self._known: dict[object, PhaseResult] = {}
        self._early = EarlyEnd()
        self._broken = 0
        """How many trials in a row could not be measured."""
        self.deadline = deadline
        self.records: list[TrialRecord] = []
        self.figures: list[Figure] = [f for phase in phases for f in phase.figures()]
        self.phase_seconds = {p.name: p.expected_seconds + p.growth_s for p in phases}
        slices.progress = self._progress
        self._ends_at = deadline

    @property
    def anchors(self) -> list[Anchor]:
        """The default's measurements until now."""
        return [Anchor(r.middle_s, r.figures) for r in self.records if r.role == BASELINE]

    @property
    def seconds(self) -> float:
        """What a trial of all phases takes, with some reserve."""
        whole = [r.seconds for r in self.records if len(r.measured) == len(self._phases)]
        return TIME_MARGIN * (
            sum(whole) / len(whole) if whole else sum(self.phase_seconds.values())
        )

    @property
    def left_s(self) -> float:
        return self.deadline - time.monotonic()

    def expect(self, trials: int) -> None:
        """Take note that so many trials are still to come, the next one among them."""
        self._ends_at = min(self.deadline, time.monotonic() + trials * self.seconds / TIME_MARGIN)

    def set_ceilings(self, figures: list[Figure], before: Figures) -> None:
        """Take note of the ceilings, which count for the trials until now too; `before` is what
        the default shows."""
        self.figures, self._early = figures, EarlyEnd()
        self._reporter.ceilings(limits(figures, before))
        for record in self.records:
            self._early.learn(record, figures)

    def warm_up(self, shape: Shape) -> None:
        """Run each load once on such an array, for no figure: the first touch of everything is
        slower, and as a figure it would be taken for noise."""
        with self._slices.made(shape) as bench:
            for phase in self._phases:
                if phase.load is not None or phase.check:
                    seconds = min(phase.min_seconds, WARM_UP_S)
                    short = {"min_seconds": seconds, "max_seconds": seconds}
                    measure(phase.model_copy(update=short), bench, self._seed)

    def run(self, role: str, shape: Shape, reuse: bool = False) -> TrialRecord:
        """Measure a shape. With `reuse`, a phase that was measured where nothing that can move it
        was different keeps its figures, unless that is so of all; and a trial that is surely not
        worth it ends early.

        Raise MeasurementError if the default cannot be measured, or not one shape after another.
        """
        started, began, written = datetime.now(UTC), time.monotonic(), self._slices.written.total
        results: list[PhaseResult] = []
        measured: list[str] = []
        status, reason = Status.COMPLETE, ""
        carried = reuse and any(_key(phase, shape) not in self._known for phase in self._phases)
        try:
            with self._slices.made(shape) as bench:
                for phase in self._phases:
                    known = self._known.get(_key(phase, shape)) if carried else None
                    if known is not None:
                        results.append(known)
                        continue
                    hopeless = self._early.judge(phase, results) if reuse else never_hopeless
                    clear = self._early.clear(phase) if reuse else never_clear
                    result = self._measure(phase, shape, bench, hopeless, clear)
                    measured.append(phase.name)
                    results.append(result)
                    if result.hopeless:
                        status, reason = Status.ABORTED, result.hopeless
                        break
                    self._known[_key(phase, shape)] = result
                    self.phase_seconds[phase.name] = result.seconds
        except InfeasibleError as error:
            status, reason = Status.INFEASIBLE, str(error)
        except MeasurementError as error:
            self._broken += 1
            if role == BASELINE or self._broken == BROKEN_IN_A_ROW:
                raise
            status, reason = Status.FAILED, str(error)
        else:
            self._broken = 0
        record = TrialRecord(
            len(self.records) + 1,
            role,
            started,
            time.monotonic() - began,
            status,
            reason,
            shape.setting,
            shape.setting,
            {name: e for result in results for name, e in result.figures.items()},
            tuple(measured),
            self._slices.written.total - written,
        )
        self.records.append(record)
        self._early.learn(record, self.figures)
        self._reporter.trial(record, gain(self.figures, record.figures, self.records[0].figures))
        return record

    def _measure(
        self, phase: Phase, shape: Shape, bench: Bench, hopeless: Hopeless, clear: Clear
    ) -> PhaseResult:
        """Measure a phase; again if that breaks, as often as it is not certain that it always
        does."""
        by = partial(by_disk, phase, shape, len(self._slices.workspace.disks))

        def once(seed: int) -> PhaseResult:
            result = measure(
                phase, bench, seed, lambda f, h: hopeless(by(f), h), lambda f: clear(by(f))
            )
            return dataclasses.replace(result, figures=by(result.figures))

        seed = self._seed + 1000 * (len(self.records) + 1)
        for attempt in range(BROKEN_IN_A_ROW - 1):
            try:
                return once(seed + attempt)
            except MeasurementError:
                continue
        return once(seed + BROKEN_IN_A_ROW)

    def _progress(self, phase: Phase, share: float) -> None:
        text = f"Trial {len(self.records) + 1}: {phase.name}"
        self._reporter.progress(text, share, max(self._ends_at - time.monotonic(), 0.0))


def by_disk(phase: Phase, shape: Shape, disks: int, figures: Figures) -> dict[str, Estimate]:
    """Figures with the rate of a check as what is read of each disk, alike for all levels: on
    RAID 10 md counts in the array's own addresses (raid10.c, resync_max_sectors)."""
    found, name = dict(figures), f"{phase.name}.throughput"
    if phase.check and name in found:
        known = found[name]
        found[name] = Estimate(known.value * shape.checked_share(disks), known.spread)
    return found


def _key(phase: Phase, shape: Shape) -> object:
    """What of a shape can move a phase: equal keys, equal figures but for noise."""
    return phase.name, tuple(v for name, v in shape.setting.items() if moves(name, phase))
