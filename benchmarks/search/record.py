"""python -m benchmarks.search.record DEVICE --out FILE: measure a whole space, to be replayed.

A phase is measured at every combination of the knobs that can move it, with the others as they
are; what they cannot move, they need not be combined with. Each combination is measured several
times, in passes of random order, so that what is replayed has the noise and the drift of the real
thing.
"""

import argparse
import itertools
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from autotune.cli.options import STATE_DIR
from autotune.measure.phase import Bench, PhaseResult, measure
from autotune.measure.workload import Phase, load_workload
from autotune.measure.write_budget import Written
from autotune.problem.setting import Setting, Value
from autotune.quantities import parse_bytes
from autotune.report.live import LiveReporter
from autotune.safety.apply import apply
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session

Cell = tuple[Phase, Setting]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.record")
    parser.add_argument("device")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--workload", default="quick")
    parser.add_argument("--destructive", help="name the device again; all data on it is lost")
    parser.add_argument("--values", type=int, default=4, help="of each knob, at most")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--ram-budget", type=parse_bytes, default="128MiB")
    chosen = parser.parse_args()
    options = Options(
        chosen.device,
        load_workload(chosen.workload),
        destructive=chosen.destructive,
        ram_budget=chosen.ram_budget,
    )
    preparation = prepare(options, STATE_DIR)
    choices = {
        name: thinned(values, preparation.baseline[name], chosen.values)
        for name, values in preparation.choices.items()
    }
    cells = list(every_cell(preparation, choices))
    found: dict[int, list[PhaseResult]] = {number: [] for number in range(len(cells))}
    with (
        TemporaryDirectory() as state,
        LiveReporter(Console(stderr=True)) as reporter,
        session(preparation, Path(state), reporter, Written()) as (bench, watch),
    ):
        for count in range(chosen.passes):
            order = random.Random(count).sample(range(len(cells)), len(cells))
            for done, number in enumerate(order):
                reporter.progress(f"Pass {count + 1}", done / len(order), None)
                watch.expect(None)
                found[number].append(measured(preparation, bench, cells[number], count))
            document = as_document(preparation, choices, cells, found)
            chosen.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(cells)} cells, {chosen.passes} times each: {chosen.out}")


def thinned(values: tuple[Value, ...], own: Value, most: int) -> tuple[Value, ...]:
    """At most so many of the values, evenly spread, the array's own among them."""
    if len(values) <= most:
        return values
    steps = (len(values) - 1) / (most - 1)
    kept = {round(number * steps) for number in range(most)}
    nearest = min(kept, key=lambda place: abs(place - values.index(own)))
    return tuple(values[place] for place in sorted(kept - {nearest} | {values.index(own)}))


def every_cell(
    preparation: Preparation, choices: Mapping[str, tuple[Value, ...]]
) -> Iterator[Cell]:
    for phase in preparation.phases:
        names = moving(preparation, phase)
        for values in itertools.product(*(choices[name] for name in names)):
            setting = {**preparation.baseline, **dict(zip(names, values, strict=True))}
            if preparation.allowed(setting):
                yield phase, setting


def moving(preparation: Preparation, phase: Phase) -> list[str]:
    """The knobs that can move a figure of the phase."""
    quantities = [figure.name.partition(".")[2] for figure in phase.figures()]
    return [k.name for k in preparation.knobs if any(k.moves(phase, q) for q in quantities)]


def measured(preparation: Preparation, bench: Bench, cell: Cell, seed: int) -> PhaseResult:
    phase, setting = cell
    apply(preparation.array, preparation.knobs, setting, bench.journal)
    return measure(phase, bench, seed)


def as_document(
    preparation: Preparation,
    choices: Mapping[str, tuple[Value, ...]],
    cells: list[Cell],
    found: Mapping[int, list[PhaseResult]],
) -> dict[str, Any]:
    array = preparation.array
    return {
        "array": f"{array.level} of {array.raid_disks} ({array.media.value}), Linux {array.kernel}",
        "workload": preparation.options.workload.name,
        "baseline": dict(preparation.baseline),
        "ram_budget_bytes": preparation.ram_budget_bytes,
        "knobs": {
            knob.name: {
                "choices": list(choices[knob.name]),
                "ordered": knob.ordered,
                "ram_bytes": [knob.ram_bytes(array, value) for value in choices[knob.name]],
            }
            for knob in preparation.knobs
        },
        "phases": {
            phase.name: {
                "weight": phase.weight,
                "moved_by": moving(preparation, phase),
                "seconds": phase.expected_seconds + phase.growth_s,
            }
            for phase in preparation.phases
        },
        "cells": [
            {
                "phase": phase.name,
                "values": [setting[name] for name in moving(preparation, phase)],
                "measured": [
                    {name: [e.value, e.spread] for name, e in result.figures.items()}
                    for result in found[number]
                ],
            }
            for number, (phase, setting) in enumerate(cells)
        ],
    }


if __name__ == "__main__":
    main()
