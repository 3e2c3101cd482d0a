"""python -m benchmarks.search.warm: what an earlier run on a similar array is worth.

Every synthetic array has a sister, on which the effect of every knob on every figure is stronger
or weaker: by the doubt that such evidence is held in. The default strategy's trials on the sister
are told to it as those of an earlier run.
"""

import argparse
import math
import random
from dataclasses import replace

import numpy as np

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem
from autotune.problem.trial import Earlier
from autotune.strategies.bayes import Bayes
from autotune.tuning.earlier_runs import DOUBT, DOUBT_OTHER
from benchmarks.search.instance import measured
from benchmarks.search.race import Race, Rules, race
from benchmarks.search.synthetic import LADDERS, SyntheticArray
from benchmarks.search.table import gain_cell, holds, over, trials_to

BETWEEN = math.hypot(DOUBT, DOUBT_OTHER)


class Sister(SyntheticArray):
    """The array, with an effect more on every figure: linear in every knob's ladder, from the
    baseline's place to its ends."""

    def truth(self, setting: Setting) -> dict[str, float]:
        rng = np.random.default_rng([21, self.seed])
        found = super().truth(setting)
        for name in found:
            for knob, size in zip(LADDERS, rng.normal(0.0, BETWEEN, len(LADDERS)), strict=True):
                if any(d.knob == knob and name in d.moves for d in self.problem(0).dimensions):
                    ladder = LADDERS[knob]
                    away = ladder.index(setting[knob]) - ladder.index(self.baseline[knob])
                    found[name] *= math.exp(float(size) * away / (len(ladder) - 1))
        return found


class Warmed(SyntheticArray):
    """The array, when an earlier run of so many trials on its sister is known."""

    def __init__(self, seed: int, trials: int) -> None:
        super().__init__(seed)
        self._earlier = run_before(Sister(seed), trials)

    def problem(self, trials: int, careful: bool = False) -> Problem:
        return replace(super().problem(trials, careful), earlier=self._earlier)


def run_before(sister: Sister, trials: int) -> tuple[Earlier, ...]:
    problem = sister.problem(trials - 1)
    rng = random.Random(f"before {sister.name}")
    strategy = Bayes(problem)
    baseline = measured(sister, problem, problem.baseline, 0, rng).trial
    strategy.tell(baseline)
    found = []
    for number in range(1, trials):
        setting = strategy.ask()
        if setting is None:
            break
        told = measured(sister, problem, setting, number, rng).trial
        strategy.tell(told)
        ratios = {
            name: Estimate(shown.value / baseline.figures[name].value, shown.spread)
            for name, shown in told.figures.items()
        }
        found.append(Earlier(dict(setting), ratios, BETWEEN))
    return tuple(found)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.warm", description=__doc__)
    parser.add_argument("--instances", type=int, default=24)
    parser.add_argument("--first", type=int, default=5000)
    parser.add_argument("--trials", type=int, default=15, help="of either run")
    parser.add_argument("--careful", action="store_true")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.instances)
    rules = Rules(chosen.trials, chosen.careful, every=True)
    for name, races in (
        ("cold", [race(SyntheticArray(seed), Bayes, rules) for seed in seeds]),
        ("warm", [race(Warmed(seed, chosen.trials), Bayes, rules) for seed in seeds]),
    ):
        print(f"{name}: {describe(races)}", flush=True)


def describe(races: list[Race]) -> str:
    return (
        f"gain at the end {gain_cell(races)}, holds {holds(races):.1%}, "
        f"over {over(races)[0]:.0%}; trials to 80 % of the optimum "
        f"{trials_to(races, 0.8)}, to 95 % {trials_to(races, 0.95)} (medians)"
    )


if __name__ == "__main__":
    main()
