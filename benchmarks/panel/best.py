"""python -m benchmarks.panel.best NAME --out FILE: look long for an array's best setting.

A grid first, each phase at every combination of what can move it; then the most promising whole
settings and the original one, in turn and several times. All of it is recorded, and a search that
was cut goes on where it was. Best is what gains most while every p99 is under the default ceiling.
"""

import argparse
import itertools
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from autotune.cli.options import STATE_DIR
from autotune.errors import InfeasibleError
from autotune.measure.phase import measure
from autotune.measure.workload import load_workload
from autotune.measure.write_budget import Written
from autotune.problem.setting import Setting
from autotune.report.live import LiveReporter
from autotune.safety.apply import apply
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session
from benchmarks.panel.judge import RELATIVE_CEILING
from benchmarks.search.record import Cell, every_cell, moving, thinned

DEVICE = "/dev/md0"
LEADERS = 6
PROOFS = 4
HOME_EVERY = 12
"""The original settings come back after so many cells, since what they show is compared with."""

Shown = dict[str, float]
"""A value for each figure; none if the kernel did not take the setting."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.best")
    parser.add_argument("array")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--values", type=int, default=3, help="of each knob, at most")
    chosen = parser.parse_args()
    preparation = prepare(Options(DEVICE, load_workload("balanced")), STATE_DIR)
    record = Record(chosen.out)
    with (
        TemporaryDirectory() as state,
        LiveReporter(Console(stderr=True)) as reporter,
        session(preparation, Path(state), reporter, Written()) as (bench, watch),
    ):

        def shown(cell: Cell, seed: int) -> Shown:
            phase, setting = cell
            watch.expect(None)
            try:
                apply(preparation.array, preparation.knobs, setting, bench.journal)
            except InfeasibleError:
                return {}
            found = measure(phase, bench, seed).figures
            return {name: estimate.value for name, estimate in found.items()}

        search(preparation, chosen.values, record, shown)
    print(f"{chosen.array}: {record.document['best']} ×{record.document['gain']:.2f}")


class Record:
    """What was measured, in a file that is whole after each measurement."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.document: dict[str, Any] = {"grid": [], "proofs": []}
        if path.exists():
            self.document = json.loads(path.read_text())

    def keep(self, **more: Any) -> None:
        self.document |= more
        partial = self._path.with_suffix(".part")
        partial.write_text(json.dumps(self.document, indent=1) + "\n")
        partial.replace(self._path)


def search(preparation: Preparation, values: int, record: Record, shown: Any) -> None:
    baseline = dict(preparation.baseline)
    choices = {
        name: thinned(all_of, baseline[name], values)
        for name, all_of in preparation.choices.items()
    }
    moved_by = {phase.name: moving(preparation, phase) for phase in preparation.phases}
    cells = list(order(preparation, list(every_cell(preparation, choices))))
    grid = record.document["grid"]
    for number, (phase, setting) in enumerate(cells[len(grid) :], start=len(grid)):
        values_here = [setting[name] for name in moved_by[phase.name]]
        figures = shown((phase, setting), number)
        grid.append({"phase": phase.name, "values": values_here, "figures": figures})
        record.keep(baseline=baseline, moved_by=moved_by)
    leaders = [baseline, *leading(preparation, moved_by, choices, grid)]
    proofs = record.document["proofs"]
    turns = [number for _ in range(PROOFS) for number in range(len(leaders))]
    for turn in turns[len(proofs) :]:
        figures = {}
        for phase in preparation.phases:
            figures |= shown((phase, leaders[turn]), len(proofs))
        proofs.append({"setting": leaders[turn], "figures": figures})
        record.keep()
    best, gain = proven(preparation, leaders, proofs)
    record.keep(best=best, gain=gain)


def order(preparation: Preparation, cells: Sequence[Cell]) -> Iterator[Cell]:
    """At random, so that a drift is no setting's, and the original settings now and then."""
    mixed = random.Random(0).sample(cells, len(cells))
    for number in range(0, len(mixed), HOME_EVERY):
        yield from ((phase, preparation.baseline) for phase in preparation.phases)
        yield from mixed[number : number + HOME_EVERY]


def leading(
    preparation: Preparation,
    moved_by: Mapping[str, Sequence[str]],
    choices: Mapping[str, Sequence[Any]],
    grid: Sequence[Mapping[str, Any]],
) -> list[Setting]:
    """The most promising settings of the grid, no two alike in what matters."""
    cells: dict[tuple[Any, ...], list[Shown]] = {}
    for each in grid:
        if each["figures"]:
            cells.setdefault((each["phase"], *each["values"]), []).append(each["figures"])
    found: dict[tuple[Any, ...], tuple[float, Setting]] = {}
    whole = (dict(zip(choices, v, strict=True)) for v in itertools.product(*choices.values()))
    for setting in whole:
        if not preparation.allowed(setting):
            continue
        places = [(p, *(setting[name] for name in names)) for p, names in moved_by.items()]
        merged = [(place, cells.get(place, [])) for place in places]
        if all(shown for _, shown in merged):
            figures = averaged([averaged(shown) for _, shown in merged])
            baseline = averaged(
                [averaged(cells[place_of(preparation, p, moved_by)]) for p in moved_by]
            )
            found[tuple(places)] = (gain_of(preparation, baseline, figures), setting)
    ranked = sorted(found.values(), key=lambda pair: -pair[0])
    return [setting for gain, setting in ranked[:LEADERS] if gain > 1.0]


def place_of(
    preparation: Preparation, phase: str, moved_by: Mapping[str, Sequence[str]]
) -> tuple[Any, ...]:
    return (phase, *(preparation.baseline[name] for name in moved_by[phase]))


def averaged(shown: Sequence[Shown]) -> Shown:
    """The geometric mean of each figure over those that show it."""
    names = {name for each in shown for name in each}
    return {
        name: math.exp(mean(math.log(each[name]) for each in shown if name in each))
        for name in names
    }


def gain_of(preparation: Preparation, baseline: Shown, figures: Shown) -> float:
    """The gain; 0 if a p99 is over its ceiling, a tenth above the original settings' own, or if
    not all was measured."""
    if not all(figure.name in figures for figure in preparation.figures if figure.weight > 0):
        return 0.0
    for name, before in baseline.items():
        if name.endswith("p99") and figures.get(name, before) > before * RELATIVE_CEILING:
            return 0.0
    weighted = [figure for figure in preparation.figures if figure.weight > 0]
    total = sum(figure.weight for figure in weighted)
    logs = (f.weight / total * math.log(figures[f.name] / baseline[f.name]) for f in weighted)
    return math.exp(sum(logs))


def proven(
    preparation: Preparation, leaders: Sequence[Setting], proofs: Sequence[Mapping[str, Any]]
) -> tuple[Setting, float]:
    """The best by what the proofs show, and its gain; the original settings if none is better."""
    shown = [
        averaged([proof["figures"] for proof in proofs if proof["setting"] == leader])
        for leader in leaders
    ]
    gains = [gain_of(preparation, shown[0], figures) for figures in shown]
    best = max(range(len(leaders)), key=lambda number: gains[number])
    return leaders[best], gains[best]


if __name__ == "__main__":
    main()
