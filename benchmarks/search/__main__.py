"""python -m benchmarks.search: the table of strategies on synthetic arrays, or recorded ones.

Versions of the search have been compared on seeds 5000 to 5047, the default. Seeds from 20000 on
are held out: nothing was chosen by looking at them.
"""

import argparse
from importlib.metadata import entry_points
from pathlib import Path

from autotune.problem.strategy import StrategyFactory
from benchmarks.search.describe import describe
from benchmarks.search.grid import RecordedGrid
from benchmarks.search.insider import Insider
from benchmarks.search.race import Race, Rules, race
from benchmarks.search.synthetic import STRENGTH, SyntheticArray
from benchmarks.search.table import gain_cell, headings, over, row

RIVALS = ("bayes", "optuna", "skopt-plain", "recipe", "random")
INSIDER = "insider"
"""No rival, since it knows how the arrays are made."""


def factory(name: str) -> StrategyFactory:
    if name == INSIDER:
        return Insider
    (point,) = entry_points(group="autotune.strategies", name=name)
    loaded: StrategyFactory = point.load()
    return loaded


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--instances", type=int, default=48)
    parser.add_argument("--first", type=int, default=5000, help="first seed")
    parser.add_argument("--grids", type=Path, nargs="+", help="recorded arrays instead")
    parser.add_argument("--knobs", type=int, default=6, choices=range(6, 9))
    parser.add_argument("--noise", type=float, default=0.08, help="of throughputs, in logs")
    parser.add_argument("--strength", type=float, default=STRENGTH, help="of all effects")
    parser.add_argument("--budgets", type=int, nargs="+", default=[10, 15, 25, 40])
    parser.add_argument("--strategies", nargs="+", default=RIVALS)
    parser.add_argument("--careful", action="store_true")
    parser.add_argument(
        "--ratio", type=float, help="ceilings of a default run: so many times its p99"
    )
    parser.add_argument("--judge", help="recommend for every strategy by this one's rule")
    parser.add_argument("--kinds", action="store_true", help="also gain by kind of array")
    parser.add_argument("--describe", action="store_true", help="only what the arrays are like")
    chosen = parser.parse_args()
    seeds = range(chosen.first, chosen.first + chosen.instances)
    arrays: list[SyntheticArray | RecordedGrid] = [
        SyntheticArray(seed, chosen.knobs, chosen.noise, chosen.strength, chosen.ratio)
        for seed in seeds
    ]
    if chosen.grids:
        arrays = [RecordedGrid(path, seed) for path in chosen.grids for seed in seeds]
    print(describe(arrays))
    if chosen.describe:
        return
    judge_by = factory(chosen.judge) if chosen.judge else None
    print(" | ".join([f"{'':12}", *headings(chosen.budgets)]))
    for name in chosen.strategies:
        made = factory(name)
        by_budget: dict[int, list[Race]] = {}
        for budget in chosen.budgets:
            every = budget == max(chosen.budgets)
            rules = Rules(budget, chosen.careful, judge_by, every)
            by_budget[budget] = [race(array, made, rules) for array in arrays]
        print(" | ".join([f"{name:12}", *row(by_budget)]), flush=True)
        if chosen.kinds:
            print_kinds(by_budget)


def print_kinds(by_budget: dict[int, list[Race]]) -> None:
    kinds = sorted({r.instance.kind for races in by_budget.values() for r in races})
    for kind in kinds:
        groups = [[r for r in races if r.instance.kind == kind] for races in by_budget.values()]
        cells = [gain_cell(group) for group in groups]
        everything = [r for group in groups for r in group]
        broken = sum(not r.kept.holds for r in everything)
        print(f"  {kind:12}", *cells, f"over {over(everything)[0]:.0%}", f"broken {broken}")


main()
