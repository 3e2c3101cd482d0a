"""One strategy on one instance: what it tried, what it would have recommended, and what a run
would have kept of that."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from autotune.problem.strategy import Problem, Recommendation, Strategy, StrategyFactory
from autotune.problem.trial import Trial
from autotune.tuning.preparation import BASELINE_TRIALS
from benchmarks.search.instance import Instance, Tried, Verdict, judge, measured
from benchmarks.search.proof import prove


@dataclass(frozen=True)
class Rules:
    """How a race is run. The baseline's trial counts as the first of `trials`.

    Each strategy recommends by its own rule, unless there is a `judge_by`: that is told the same
    trials and recommends for all, so that only what was tried differs.
    """

    trials: int
    careful: bool = False
    judge_by: StrategyFactory | None = None
    every: bool = False
    """Also judge what would have been recommended after each trial."""


@dataclass
class Race:
    """The truth about a run's trials, its recommendation, and what it kept after the proof."""

    instance: Instance
    final: Verdict
    kept: Verdict
    kept_baseline: bool
    tried: list[Tried] = field(default_factory=list)
    proofs: list[Tried] = field(default_factory=list)
    candidates: int = 0
    after: list[Verdict] = field(default_factory=list)
    """By trial, if asked for; the first is the baseline's."""
    asking: list[float] = field(default_factory=list)
    """Seconds a proposal."""

    def share(self, verdict: Verdict) -> float:
        """The part of the possible gain captured; 0 if a ceiling is broken."""
        if not verdict.holds:
            return 0.0
        return (verdict.gain - 1.0) / (self.instance.optimum - 1.0)


def race(instance: Instance, factory: StrategyFactory, rules: Rules) -> Race:
    """Run a strategy until its trials are spent or it stops, and prove what it found."""
    problem = instance.problem(rules.trials - 1, rules.careful)
    rng = random.Random(f"{instance.name}:{rules.trials}")
    strategy = factory(problem)
    judging = rules.judge_by(problem) if rules.judge_by else strategy
    run = Race(instance, Verdict(1.0, 0.0), Verdict(1.0, 0.0), True)
    told: list[Trial] = []

    def tell(trial: Trial) -> None:
        told.append(trial)
        strategy.tell(trial)
        if judging is not strategy:
            judging.tell(trial)

    for _ in range(BASELINE_TRIALS):
        tell(measured(instance, problem, problem.baseline, 0, rng).trial)
    _follow(run, problem, judging, rules)
    for number in range(1, rules.trials):
        start = time.perf_counter()
        setting = strategy.ask()
        run.asking.append(time.perf_counter() - start)
        if setting is None:
            break
        run.tried.append(measured(instance, problem, setting, number, rng))
        tell(run.tried[-1].trial)
        _follow(run, problem, judging, rules)
    final = judging.recommend()
    run.final = judge(instance, problem, final.setting)
    proofs = prove(instance, problem, rules.judge_by or factory, judging, told, rng)
    run.proofs, run.candidates = proofs.tried, proofs.candidates
    run.kept = judge(instance, problem, proofs.kept)
    run.kept_baseline = dict(proofs.kept) == dict(problem.baseline)
    return run


def _follow(run: Race, problem: Problem, judging: Strategy, rules: Rules) -> None:
    if rules.every:
        recommend: Callable[[], Recommendation] = judging.recommend
        run.after.append(judge(run.instance, problem, recommend().setting))
