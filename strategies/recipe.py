"""What a careful administrator does: one knob at a time, doubled until it stops helping."""

from collections.abc import Generator, Sequence

from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Dimension, Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.strategies._observed import Observed

HELPS = 1.01
"""A step must bring so much over the last kept one."""

Step = Generator[dict[str, int | str], None, None]


class Recipe:
    """Goes through the knobs by the weight of what they move; keeps a step that helped.

    An ordered knob is doubled until a step does not help, or, if the first does not, halved; a
    named one tries every name. Knobs whose figures only have ceilings come last. None when all
    knobs were gone through.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._observed = Observed(problem)
        self._steps = self._go()
        self._pending: dict[str, int | str] | None = None
        self._started = False

    def ask(self) -> Setting | None:
        if not self._started:
            self._pending, self._started = next(self._steps, None), True
        return self._pending

    def tell(self, trial: Trial) -> None:
        self._observed.add(trial)
        if self._pending and setting_key(trial.setting) == setting_key(self._pending):
            self._pending = next(self._steps, None)

    def recommend(self) -> Recommendation:
        return self._observed.recommend()

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return self._observed.weigh(trials, setting, doubtful)

    def _go(self) -> Step:
        best = dict(self._problem.baseline)
        for dimension in sorted(self._problem.dimensions, key=self._weight, reverse=True):
            start = best[dimension.knob]
            place = dimension.choices.index(start)
            upward = list(dimension.choices[place + 1 :])
            downward = list(reversed(dimension.choices[:place]))
            if not dimension.ordered:
                for value in upward + downward:
                    best = yield from self._try(best, dimension, value)
                continue
            for values in (_doublings(start, upward), _doublings(start, downward)):
                before = best
                for value in values:
                    now = yield from self._try(best, dimension, value)
                    if now is best:
                        break
                    best = now
                if best is not before:
                    break

    def _try(
        self, best: dict[str, int | str], dimension: Dimension, value: int | str
    ) -> Generator[dict[str, int | str], None, dict[str, int | str]]:
        """`best` with one value changed if that helps and holds, else `best` itself."""
        candidate = {**best, dimension.knob: value}
        if not self._problem.allowed(candidate):
            return best
        if not self._observed.tried(candidate):
            yield candidate
        now, kept = self._observed.gain(candidate), self._observed.gain(best)
        if now is None or kept is None or self._observed.p_hold(candidate) < 0.5:
            return best
        return candidate if now.value > kept.value * HELPS else best

    def _weight(self, dimension: Dimension) -> float:
        return sum(f.weight for f in self._problem.figures if f.name in dimension.moves)


def _doublings(start: int | str, values: list[int | str]) -> list[int | str]:
    """Of ascending or descending numbers, those at least twice or at most half the one before."""
    kept, last = [], int(start)
    for value in map(int, values):
        if value >= 2 * last or 2 * value <= last:
            kept.append(value)
            last = value
    return list(kept)
