"""What a run makes of a recommendation: measured in turn with the baseline, as the tuner does."""

import dataclasses
import random
from collections.abc import Callable, Sequence

from autotune.problem.objective import Figures
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem, Strategy, StrategyFactory, Weighed
from autotune.problem.trial import Trial
from autotune.results.proof import mean
from autotune.stats.sequential import ERRORS, MOST_PAIRS, ProofTerms, Step, look, order, spending
from autotune.stats.verdict import Verdict, judge
from autotune.strategies.surrogate.importance import weigh
from autotune.tuning.better_part import better_part
from autotune.tuning.preparation import DOUBTS
from autotune.tuning.prove import WORTH_A_TRIAL
from autotune.tuning.strategy_input import without
from benchmarks.search.instance import Instance, Tried, measured


@dataclasses.dataclass
class Proofs:
    """What was kept in the end (the baseline: nothing), and the trials that proving took."""

    kept: Setting
    tried: list[Tried]
    candidates: int = 0


def prove(
    instance: Instance,
    problem: Problem,
    factory: StrategyFactory,
    strategy: Strategy,
    told: Sequence[Trial],
    rng: random.Random,
) -> Proofs:
    """Prove what the strategy recommends after what it was told, or the next best."""
    trials, left, refused = list(told), problem, {setting_key(problem.baseline)}
    part: Setting | None = None
    found = Proofs(problem.baseline, [])
    for error in ERRORS:
        if part is not None:
            winner, doubts = part, list[Tried]()
        else:
            winner, doubts = _candidate(instance, left, strategy, trials, rng)
        found.tried += doubts
        trials += [doubt.trial for doubt in doubts]
        if setting_key(winner) in refused:
            break
        found.candidates += 1
        kept, sides, verdict = _in_turn(instance, problem, winner, trials, error, rng)
        found.tried += sides
        if kept and verdict.overall.ratio > (left.proven or 0.0):
            found = dataclasses.replace(found, kept=winner)
            left = dataclasses.replace(left, proven=verdict.overall.ratio)
        trials += [side.trial for side in sides]
        left = without(left, winner)
        refused.add(setting_key(winner))
        by_knob = {d.knob: d.moves for d in problem.dimensions}
        part = better_part(by_knob, problem.figures, winner, problem.baseline, verdict)
        part = None if kept else part
        if part is not None and (setting_key(part) in refused or not problem.allowed(part)):
            part = None
        strategy = factory(left)
        for trial in trials:
            strategy.tell(trial)
    return found


def _candidate(
    instance: Instance,
    problem: Problem,
    strategy: Strategy,
    before_that: Sequence[Trial],
    rng: random.Random,
) -> tuple[Setting, list[Tried]]:
    """What to prove, without the changes that nothing speaks for, and the trials of what was
    doubtful, as the tuner makes them."""
    trials, doubts = list(before_that), list[Tried]()
    while True:
        best = dict(strategy.recommend().setting)
        weighed = weigh(problem, trials, best)
        smaller = _without_unneeded(best, weighed)
        if weighed.loss <= WORTH_A_TRIAL:
            return smaller, doubts
        is_baseline = setting_key(smaller) == setting_key(problem.baseline)
        if is_baseline or len(doubts) == DOUBTS:
            return _without_unneeded(best, weigh(problem, trials, best, doubtful=True)), doubts
        asked = best if len(doubts) % 2 else smaller
        doubts.append(measured(instance, problem, asked, len(trials), rng))
        trials.append(doubts[-1].trial)
        strategy.tell(trials[-1])


def _without_unneeded(setting: Setting, weighed: Weighed) -> Setting:
    return {**setting, **{share.knob: share.before for share in weighed.shares if not share.needed}}


def _in_turn(
    instance: Instance,
    problem: Problem,
    winner: Setting,
    before_that: Sequence[Trial],
    error: float,
    rng: random.Random,
) -> tuple[bool, list[Tried], Verdict]:
    """Whether the winner is kept, both sides in the phases where they can differ, pair by pair
    until it is clear, as `confirm` does it, and what they showed."""
    moved = moves(problem, winner)
    phases = {figure.phase for figure in problem.figures if moved(figure.name)}
    figures = [f for f in problem.figures if moved(f.name)]
    baseline = setting_key(problem.baseline)
    earlier = [t.figures for t in before_that if setting_key(t.setting) == baseline]
    known = [t.figures for t in before_that if setting_key(t.setting) == setting_key(winner)]
    both = {"winner": winner, "baseline": problem.baseline}
    sides: dict[str, list[Figures]] = {"winner": [], "baseline": []}
    tried: list[Tried] = []
    for pair, allowed in enumerate(spending(MOST_PAIRS, error)):
        for side in order(pair):
            number = len(before_that) + len(tried)
            tried.append(measured(instance, problem, both[side], number, rng, phases))
            sides[side].append(tried[-1].trial.figures)
        after, before = sides["winner"], sides["baseline"]
        verdict = judge(problem.figures, after, before, earlier, known, allowed)
        seen = look(ProofTerms(figures), verdict, mean(before), mean(after), pair + 1, MOST_PAIRS)
        if seen.step is not Step.MORE:
            break
    return seen.step is Step.KEEP, tried, verdict


def moves(problem: Problem, setting: Setting) -> Callable[[str], bool]:
    """Which figures a changed knob can move."""
    changed = [d for d in problem.dimensions if setting[d.knob] != problem.baseline[d.knob]]
    names = frozenset().union(*(d.moves for d in changed))
    return names.__contains__
