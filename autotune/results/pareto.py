"""The settings that a run tried, as points of gain against latency, and the three with names.

Pure: from stored trials alone. The latency of a point is the geometric mean of its p99 figures
relative to the baseline's, each counting the same. Not the worst ratio to a ceiling: that one
would move whenever a ceiling does, be undefined without one, and as a maximum of noisy values
be noisier than any of them. Each single ceiling still has to hold where one is asked for.

Points are compared by what they give at least (one spread below the measured gain, one above
the measured latency), so that one lucky trial does not beat a setting that is well known.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, broken_ceilings, gain
from autotune.problem.setting import Setting, setting_key
from autotune.problem.trial import Status
from autotune.results.proof import is_of_proof, original, proofs
from autotune.results.stored_run import StoredProblem
from autotune.stats.drift import Anchor, has_drifted, without_drift
from autotune.stats.verdict import NOTABLE
from autotune.store import TrialRecord


@dataclass(frozen=True)
class Point:
    """One setting, all its trials pooled. `gain` is the objective and `latency` the p99, both
    relative to the baseline's 1.0; `confirmed` if it was measured in turn with the baseline and
    found better (the baseline itself claims nothing, so it counts as confirmed); `in_turn` if it
    was measured so at all."""

    setting: Setting
    gain: Estimate
    latency: Estimate
    figures: Figures
    trials: tuple[int, ...]
    confirmed: bool
    in_turn: bool = False

    @property
    def sure_gain(self) -> float:
        """What it gains at least, one spread down."""
        return self.gain.value * math.exp(-self.gain.spread)

    @property
    def sure_latency(self) -> float:
        """What its p99 is at most, one spread up."""
        return self.latency.value * math.exp(self.latency.spread)

    def holds(self, figures: Iterable[Figure], baseline: "Point") -> bool:
        """Whether the measured values are within the figures' ceilings."""
        return not broken_ceilings(figures, self.figures, baseline.figures)


@dataclass(frozen=True)
class Named:
    """The three answers of a run; None where no trial held what it asks for.

    `throughput`: the greatest gain under the user's own ceilings, latency being free without one.
    `balanced`: what the run decided for, or, if it did not come so far, the greatest gain under
    every ceiling, the default of "no worse than the baseline" too. `latency`: the lowest p99 under
    every ceiling among the settings that are no slower than the baseline, to a percent.
    """

    throughput: Point | None
    balanced: Point | None
    latency: Point | None


class PooledTrials:
    """Everything that was measured, by figure and by the values of the knobs that can move it: what
    other knobs are set to does not matter, so all such trials are repeats of one another."""

    def __init__(self, problem: StoredProblem, trials: Sequence[TrialRecord]) -> None:
        self._problem = problem
        self._measured: dict[object, list[Estimate]] = {}
        self._phase = {figure.name: figure.phase for figure in problem.figures}
        complete = [trial for trial in trials if trial.status is Status.COMPLETE]
        baseline = setting_key(problem.baseline)
        anchors = [t for t in complete if setting_key(t.requested) == baseline]
        self._anchors = [Anchor(t.middle_s, self._fresh(t)) for t in anchors]
        drifted = {name for name in self._phase if has_drifted(self._anchors, name)}
        self._repeats: dict[object, list[Estimate]] = {}
        for trial in complete:
            for name, estimate in self.of(trial).items():
                key = self.key(name, trial.requested)
                self._measured.setdefault(key, []).append(estimate)
                # A drift goes through these, so without it they agree, whatever the noise.
                if not (name in drifted and trial in anchors[2:]):
                    self._repeats.setdefault(key, []).append(estimate)
        self._noise = {name: self._repeat_noise(name) for name in self._phase}

    def of(self, trial: TrialRecord) -> Figures:
        """What a trial measured itself, without the array's drift."""
        return without_drift(self._fresh(trial), trial.middle_s, self._anchors)

    def _fresh(self, trial: TrialRecord) -> dict[str, Estimate]:
        """The figures that this trial measured itself."""
        return {n: e for n, e in trial.figures.items() if self._phase.get(n) in trial.measured}

    def key(self, name: str, setting: Setting) -> object:
        """What of a setting a figure depends on."""
        moving = {k: v for k, v in setting.items() if self._can_move(k, name)}
        return (name, setting_key(moving))

    def _can_move(self, knob: str, name: str) -> bool:
        return knob in self._problem.knobs and name in self._problem.knobs[knob].moves

    def _repeat_noise(self, name: str) -> float:
        """How much repeats of a figure scatter (log scale), which is more than each one's own
        spread says; 0 if nothing was measured twice."""
        groups = [g for k, g in self._repeats.items() if isinstance(k, tuple) and k[0] == name]
        squares = degrees = 0.0
        for group in groups:
            logs = [math.log(estimate.value) for estimate in group]
            centre = sum(logs) / len(logs)
            squares += sum((log - centre) ** 2 for log in logs)
            degrees += len(logs) - 1
        return math.sqrt(squares / degrees) if degrees else 0.0

    def unsure(self, figures: Figures, times: int) -> dict[str, Estimate]:
        """Figures that were measured so many times, no surer than repeats in this run are."""
        least = {n: self._noise.get(n, 0.0) / math.sqrt(times) for n in figures}
        return {n: Estimate(e.value, max(e.spread, least[n])) for n, e in figures.items()}

    def figures(self, setting: Setting) -> dict[str, Estimate]:
        """What is known of a setting: each figure's mean (log scale), with its spread."""
        found = {}
        for name, noise in self._noise.items():
            group = self._measured.get(self.key(name, setting))
            if group:
                log = sum(math.log(estimate.value) for estimate in group) / len(group)
                variance = sum(max(estimate.spread, noise) ** 2 for estimate in group)
                found[name] = Estimate(math.exp(log), math.sqrt(variance) / len(group))
        return found


def points(
    problem: StoredProblem,
    figures: Sequence[Figure],
    trials: Sequence[TrialRecord],
    confirmed: Setting | None,
) -> list[Point]:
    """A point for each setting that was measured in full and never given up, the baseline's first.

    `figures` are the run's, with resolved ceilings: those that have one are the p99s. What was
    measured in turn has the figures of that. All are moved along with the original settings', which
    every report says alike (`proof.original`).
    """
    pool = PooledTrials(problem, trials)
    settings = {setting_key(t.requested): t.requested for t in trials}
    shown = pool.figures(problem.baseline)
    in_turn = {setting_key(proof.setting): proof for proof in proofs(trials)}
    # A proof stands though its long load could not be measured, or an earlier trial was ended.
    incomplete = {
        setting_key(t.requested)
        for t in trials
        if t.status is not Status.COMPLETE and not is_of_proof(t)
    } - in_turn.keys()
    start = original(trials, confirmed)
    # As sure as all trials together make it, but as every report says it.
    before = {n: Estimate(start.get(n, e).value, e.spread) for n, e in shown.items()}
    baseline = setting_key(problem.baseline)
    found = []
    for key in [baseline, *(key for key in settings if key not in incomplete and key != baseline)]:
        setting = settings.get(key, problem.baseline)
        after = as_said(pool.figures(setting), before, shown)
        moved, baseline_figures = problem.moved(setting), before
        if (proof := in_turn.get(key)) is not None:
            pairs = len(proof.trials) // 2
            after |= as_said(pool.unsure(proof.after, pairs), before, proof.before)
            baseline_figures = before | {
                n: Estimate(before[n].value, e.spread)
                for n, e in pool.unsure(proof.before, pairs).items()
                if n in before
            }
            moved |= proof.after.keys()
        # What no changed knob can move is equal, not twice as uncertain.
        fixed = {n: Estimate(e.value, 0.0) for n, e in before.items()}
        now = {**fixed, **{name: e for name, e in after.items() if name in moved}}
        base = {**fixed, **{n: baseline_figures[n] for n in moved if n in baseline_figures}}
        known = {n: e for n, e in now.items() if n not in moved or n in after}
        improvement = gain(figures, known, base)
        latency = _latency(figures, known, base)
        if improvement is None or latency is None:
            continue
        numbers = tuple(t.number for t in trials if setting_key(t.requested) == key)
        proven = key == baseline or (confirmed is not None and key == setting_key(confirmed))
        found.append(Point(setting, improvement, latency, after, numbers, proven, bool(proof)))
    return found


def as_said(figures: Figures, before: Figures, shown: Figures) -> dict[str, Estimate]:
    """Figures moved along with those of the original settings: from what all trials together have
    `shown` to what every report says of them, `before`."""
    return {
        n: Estimate(e.value * before[n].value / shown[n].value, e.spread)
        if n in shown and n in before
        else e
        for n, e in figures.items()
    }


def _latency(figures: Iterable[Figure], now: Figures, before: Figures) -> Estimate | None:
    """The geometric mean of the p99s relative to the baseline's; None if one is missing."""
    tails = [figure.name for figure in figures if figure.limited]
    if any(name not in now or name not in before for name in tails):
        return None
    logs = [math.log(now[name].value / before[name].value) for name in tails]
    variance = sum(now[name].spread ** 2 + before[name].spread ** 2 for name in tails)
    count = max(len(tails), 1)
    return Estimate(math.exp(sum(logs) / count), math.sqrt(variance) / count)


def front(candidates: Sequence[Point]) -> list[Point]:
    """Those that no other beats in gain without losing in latency, the calmest first."""
    kept: list[Point] = []
    for point in sorted(candidates, key=lambda p: (p.sure_latency, -p.sure_gain)):
        if not kept or point.sure_gain > kept[-1].sure_gain:
            kept.append(point)
    return kept


def fastest(candidates: Sequence[Point], figures: Sequence[Figure]) -> Point | None:
    """The greatest sure gain within the figures' ceilings; None if nothing holds them. The first
    candidate is the baseline."""
    holding = (p for p in candidates if p.holds(figures, candidates[0]))
    return max(holding, key=lambda p: p.sure_gain, default=None)


def calmest(candidates: Sequence[Point], figures: Sequence[Figure]) -> Point | None:
    """The lowest sure p99 within the ceilings that is no slower than the baseline, to a percent
    (`verdict.NOTABLE`); None if nothing holds them."""
    holding = (p for p in candidates if p.holds(figures, candidates[0]))
    steady = (p for p in holding if p.gain.value >= math.exp(-NOTABLE))
    return min(steady, key=lambda p: p.sure_latency, default=None)
