"""What a run makes of a recommendation: measured in turn with the baseline, as the tuner does."""

import dataclasses
import random
from collections.abc import Callable, Sequence

from autotune.problem.objective import broken_ceilings
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem, Strategy, StrategyFactory
from autotune.problem.trial import Trial
from autotune.stats.verdict import Conclusion, judge
from autotune.strategies.surrogate.importance import what_mattered
from autotune.tuning.confirm import mean
from autotune.tuning.prepare import CONFIRM_ORDER
from autotune.tuning.strategy_input import without
from autotune.tuning.tune import CANDIDATES
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
    trials, left = list(told), problem
    home = setting_key(problem.baseline)
    found = Proofs(problem.baseline, [])
    for _ in range(CANDIDATES):
        winner = dict(strategy.recommend().setting)
        if setting_key(winner) != home:
            shares = what_mattered(left, trials, winner)
            winner |= {share.knob: share.before for share in shares if not share.needed}
        if setting_key(winner) == home:
            break
        found.candidates += 1
        sides = _in_turn(instance, problem, winner, len(trials), rng)
        found.tried += sides
        if _is_kept(problem, winner, [side.trial for side in sides], trials):
            return dataclasses.replace(found, kept=winner)
        trials += [side.trial for side in sides]
        left = without(left, winner)
        strategy = factory(left)
        for trial in trials:
            strategy.tell(trial)
    return found


def _in_turn(
    instance: Instance, problem: Problem, winner: Setting, number: int, rng: random.Random
) -> list[Tried]:
    """Both sides, in the phases where they can differ."""
    moved = moves(problem, winner)
    phases = {figure.phase for figure in problem.figures if moved(figure.name)}
    both = {"winner": winner, "baseline": problem.baseline}
    return [
        measured(instance, problem, both[side], number + place, rng, phases)
        for place, side in enumerate(CONFIRM_ORDER)
    ]


def moves(problem: Problem, setting: Setting) -> Callable[[str], bool]:
    """Which figures a changed knob can move."""
    changed = [d for d in problem.dimensions if setting[d.knob] != problem.baseline[d.knob]]
    names = frozenset().union(*(d.moves for d in changed))
    return names.__contains__


def _is_kept(
    problem: Problem, winner: Setting, sides: Sequence[Trial], before_that: Sequence[Trial]
) -> bool:
    """As `confirm` decides it for a winner of a search."""
    home = setting_key(problem.baseline)
    after = [t.figures for t in sides if setting_key(t.setting) != home]
    before = [t.figures for t in sides if setting_key(t.setting) == home]
    earlier = [t.figures for t in before_that if setting_key(t.setting) == home]
    verdict = judge(problem.figures, after, before, earlier)
    moved = moves(problem, winner)
    figures = [f for f in problem.figures if moved(f.name)]
    if broken_ceilings(figures, mean(after), mean(before)):
        return False
    return verdict.overall.conclusion is Conclusion.BETTER
