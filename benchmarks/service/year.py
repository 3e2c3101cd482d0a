"""python -m benchmarks.service.year: a year of weekly passes on many arrays that change, in fast
time. The arrays are those of benchmarks.search; what truly is better is known to the judge only.

Each week an array may change for good (other disks: another optimum and another level), and each
pass has a level of its own, as days differ.
"""

import argparse
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.problem.strategy import StrategyFactory
from autotune.problem.trial import Status, Trial
from autotune.service.policy import ComparedInTurn, LastSeen, Pass, broken, run_pass
from autotune.stats.verdict import Conclusion, judge
from autotune.tuning.strategies import find_strategy, load_strategy
from benchmarks.search.instance import judge as truth_of
from benchmarks.search.synthetic import SyntheticArray

WEEKS = 52
CHANGES = 0.04
"""The chance of a change for good, in a week."""
DAY_SPREAD = 0.04
"""Of the level from day to day, on log scale."""
PAIRS = 2
"""Of measurements in turn, as `autotune` confirms."""


@dataclass
class SimulatedArray:
    """An array in the simulation, with what it has been through."""

    array: SyntheticArray
    factory: StrategyFactory
    trials: int
    rng: random.Random
    incumbent: Setting
    level: float = 1.0
    today: float = 1.0
    searches: int = 0
    worst: list[float] = field(default_factory=list)
    """The true gain of each adopted setting over what was there."""

    @property
    def fingerprint(self) -> str:
        return "the same"

    @property
    def figures(self) -> tuple[Figure, ...]:
        return self.array.figures

    def measured(self, setting: Setting) -> dict[str, Estimate]:
        shown = self.array.measure(setting, 0, self.rng)
        scale = self.level * self.today
        # Latencies do not follow: a ceiling is asked of the array as it is.
        return {
            n: Estimate(e.value * (scale if n.endswith("throughput") else 1.0), e.spread)
            for n, e in shown.items()
        }

    def prove(self, setting: Setting) -> ComparedInTurn:
        after = [self.measured(setting) for _ in range(PAIRS)]
        before = [self.measured(self.incumbent) for _ in range(PAIRS)]
        verdict = judge(self.figures, after, before)
        return ComparedInTurn(verdict, _mean(before), _mean(after))

    def against_originals(self) -> ComparedInTurn:
        return self.prove(self.array.baseline)

    def back_to_originals(self) -> None:
        self.incumbent = self.array.baseline

    def tune(self) -> Setting | None:
        self.searches += 1
        problem = self.array.problem(self.trials, careful=True)
        strategy = self.factory(problem)
        setting: Setting | None = problem.baseline
        for _ in range(1 + self.trials):
            if setting is None:
                break
            strategy.tell(Trial(dict(setting), Status.COMPLETE, self.measured(setting)))
            setting = strategy.ask()
        found = strategy.recommend().setting
        if dict(found) == dict(self.incumbent):
            return None
        proof = self.prove(found)
        better = proof.verdict.overall.conclusion is Conclusion.BETTER
        return found if better and not broken(self.figures, proof.after) else None

    def is_original(self, setting: Setting) -> bool:
        return dict(setting) == dict(self.array.baseline)

    def adopt(self, setting: Setting, proof: ComparedInTurn) -> None:
        self.worst.append(self.true_gain(setting) / self.true_gain(self.incumbent))
        self.incumbent = setting

    def true_gain(self, setting: Setting) -> float:
        return truth_of(self.array, self.array.problem(1), setting).gain


def _mean(measured: list[dict[str, Estimate]]) -> dict[str, Estimate]:
    return {
        name: Estimate(
            math.exp(sum(math.log(m[name].value) for m in measured) / len(measured)),
            math.sqrt(sum(m[name].spread ** 2 for m in measured)) / len(measured),
        )
        for name in measured[0]
    }


def live(managed: SimulatedArray, spare: Iterator[int], weeks: int) -> Iterator[tuple[bool, Pass]]:
    """A year of one array: whether it changed for good before each pass, and the pass."""
    first = managed.tune()
    if first is not None:
        managed.incumbent = first
    known: LastSeen | None = None
    for _ in range(weeks):
        changed = managed.rng.random() < CHANGES
        if changed:
            managed.array = SyntheticArray(next(spare))
            managed.level *= math.exp(managed.rng.choice((-1, 1)) * managed.rng.uniform(0.3, 0.9))
            if not managed.array.allowed(managed.incumbent):
                managed.incumbent = managed.array.baseline
        managed.today = math.exp(managed.rng.gauss(0.0, DAY_SPREAD))
        done = run_pass(managed, known, adopt=True)
        known = done.known
        yield changed, done


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service.year")
    parser.add_argument("--arrays", type=int, default=193, help="193 years are 10000 passes")
    parser.add_argument("--weeks", type=int, default=WEEKS)
    parser.add_argument("--strategy", default="bayes")
    parser.add_argument("--trials", type=int, default=12)
    parser.add_argument("--seed", type=int, default=10_000)
    asked = parser.parse_args()
    factory = load_strategy(find_strategy(asked.strategy))
    spare = iter(range(asked.seed, asked.seed + 100_000))
    outcomes: Counter[str] = Counter()
    changes = adopted = unprovoked = searches = 0
    gains: list[float] = []
    for number in range(asked.arrays):
        array = SyntheticArray(next(spare))
        rng = random.Random(asked.seed + number)
        managed = SimulatedArray(array, factory, asked.trials, rng, array.baseline)
        since = True
        for changed, done in live(managed, spare, asked.weeks):
            since = since or changed
            changes += changed
            outcomes[done.outcome] += 1
            if done.outcome == "adopted":
                adopted += 1
                unprovoked += not since
                since = False
        gains += managed.worst
        searches += managed.searches
    print(f"{sum(outcomes.values())} passes on {asked.arrays} arrays that changed {changes} times")
    for outcome, count in sorted(outcomes.items()):
        print(f"  {outcome:<10} {count:6}")
    print(f"searches: {searches}, of {asked.trials} trials at most")
    print(f"adopted without a change since the last time: {unprovoked} of {adopted}")
    worse = [gain for gain in gains if gain < 0.99]
    print(f"adopted though truly worse by more than 1 %: {len(worse)} of {len(gains)}")
    if gains:
        mean = math.exp(sum(map(math.log, gains)) / len(gains))
        print(f"true gain of what was adopted: mean ×{mean:.2f}, least ×{min(gains):.2f}")


if __name__ == "__main__":
    main()
