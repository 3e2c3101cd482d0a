"""When to end a trial of the search early, from what the trials so far have shown."""

import math
from collections.abc import Sequence
from statistics import fmean

from autotune.measure.phase import Clear, Histograms, Hopeless, Hopelessness, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.ceilings import LEAST_SLACK
from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, gain, p_hold
from autotune.problem.trial import Status
from autotune.results.ended_early import OVER_CEILING
from autotune.stats.bounds import best_possible, clearly_apart, rough_percentile, surely_over
from autotune.stats.drift import Anchor, noise
from autotune.store import TrialRecord

PERCENT = 99.0
HOLDS = 0.95
"""The least P(hold) of what sets a mark for others: what breaks its ceilings is not recommended."""


class EarlyEnd:
    """Learns from every trial; judges one that is under way."""

    def __init__(self) -> None:
        self._figures: Sequence[Figure] = ()
        self._baselines: list[TrialRecord] = []
        self._noise: dict[str, float] = {}
        self._best_seen: dict[str, float] = {}
        self._incumbent = 0.0

    def learn(self, record: TrialRecord, figures: Sequence[Figure]) -> None:
        """Keep the noise that the baseline's repeats show, the best of each figure, and the best
        gain that very probably holds its ceilings (at the bottom of its spread, so that luck sets
        no mark)."""
        self._figures = figures
        if record.role == "baseline":
            self._baselines.append(record)
            anchors = [Anchor(r.middle_s, r.figures) for r in self._baselines]
            self._noise = {f.name: noise(anchors, f.name) for f in figures}
        for name, estimate in record.figures.items():
            self._best_seen[name] = max(self._best_seen.get(name, 0.0), estimate.value)
        noisy, before = self._noisy(record.figures), self._noisy(self._before)
        if record.status is Status.COMPLETE and p_hold(figures, noisy, before) >= HOLDS:
            shown = gain(figures, noisy, self._before)
            if shown is not None:
                bottom = shown.value * math.exp(-2 * shown.spread)
                self._incumbent = max(self._incumbent, bottom)

    @property
    def _before(self) -> Figures:
        """Each figure as the first baseline that has it shows it: a short phase may give none."""
        latest_first = reversed(self._baselines)
        return {name: figure for each in latest_first for name, figure in each.figures.items()}

    def _noisy(self, figures: Figures) -> dict[str, Estimate]:
        """With the noise between trials, which a single measurement does not show."""
        return {
            name: Estimate(e.value, math.hypot(e.spread, self._noise.get(name, 0.0)))
            for name, e in figures.items()
        }

    def clear(self, phase: Phase) -> Clear:
        """When a phase of a search need not go on until it is steady: its rate is clearly not the
        baseline's. What is proven later is measured to the end."""
        name = f"{phase.name}.throughput"
        before = [r.figures[name] for r in self._baselines[:1] if name in r.figures]
        noise = self._noise.get(name, 0.0)

        def clear(figures: Figures) -> bool:
            return (
                bool(before) and name in figures and clearly_apart(figures[name], before[0], noise)
            )

        return clear

    def _limit(self, figure: Figure, phase: Phase) -> float | None:
        """The ceiling in ns of a figure of the phase. One relative to the baseline is only surely
        passed where noise between trials cannot be why; one in ms not by what the array shows as
        it is, or no trial of an array that breaks its ceiling would come to its end."""
        if figure.phase != phase.name or not figure.limited:
            return None
        shown = [r.figures[figure.name] for r in self._baselines if figure.name in r.figures]
        if not shown:
            return figure.ceiling
        before = math.exp(fmean(math.log(estimate.value) for estimate in shown))
        before *= math.exp(self._noise.get(figure.name, 0.0))
        if figure.ceiling is not None:
            return max(figure.ceiling, before * LEAST_SLACK)
        return (figure.ratio or 1.0) * before

    def judge(self, phase: Phase, results: Sequence[PhaseResult]) -> Hopeless:
        """What ends a phase, after the results of the trial's earlier ones: a latency surely over
        its ceiling, or a gain surely below the incumbent."""
        before = {name: e for result in results for name, e in result.figures.items()}
        limits = {f.name: limit for f in self._figures if (limit := self._limit(f, phase))}

        def judge(figures: Figures, histograms: Histograms) -> Hopelessness | None:
            for name, limit in limits.items():
                seen = histograms[name.partition(".")[2]]
                if surely_over(seen, limit, PERCENT):
                    rough = {name: rough_percentile(seen, PERCENT, limit)}
                    return Hopelessness(f"{name} {OVER_CEILING}", rough)
            known = self._noisy({**before, **figures})
            most = best_possible(self._figures, known, self._before, self._best_seen)
            if most < self._incumbent:
                return Hopelessness("surely below the best so far", {})
            return None

        return judge
