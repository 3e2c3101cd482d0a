"""In the lab: measure every shape, or run a design, make what it prints and measure that."""

import argparse
import json
import random
import shlex
import subprocess
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from autotune.design.blank_disks import find_disks
from autotune.design.design import Options, Result, design
from autotune.design.shape import Shape
from autotune.design.slices import on_slices
from autotune.design.space import space
from autotune.design.trials import by_disk
from autotune.design.workspace import Workspace, last_free, slice_of
from autotune.knobs import stripe_cache
from autotune.measure.fio_command import Target
from autotune.measure.phase import Bench, measure
from autotune.measure.workload import Workload, load_workload
from autotune.report.design import print_design
from autotune.report.design_document import document
from autotune.report.live import LiveReporter
from autotune.safety.new_journal import new_journal
from autotune.system.array import find_array

DISKS = ("/dev/vda", "/dev/vdb", "/dev/vdc", "/dev/vdd", "/dev/vde")
UUID = "d" * 32
CONSISTENCY = ("bitmap",)
"""One alone: the grid is of chunks and layouts."""


def shown(workload: Workload, shape: Shape, bench: Bench, seed: int) -> dict[str, list[float]]:
    """Every figure, with its spread."""
    found: dict[str, list[float]] = {}
    for phase in workload.phases:
        figures = by_disk(phase, shape, len(DISKS), measure(phase, bench, seed).figures)
        found |= {name: [e.value, e.spread] for name, e in figures.items()}
    return found


def grid(workload: Workload, shapes: Sequence[Shape], passes: int, out: Path) -> None:
    """Measure these shapes so often, in random order; a line for each in `out`, which a run that
    was cut goes on with."""
    disks = find_disks(DISKS, DISKS)
    lines = out.read_text().splitlines() if out.exists() else []
    known = [(line["pass"], Shape.of(line["setting"])) for line in map(json.loads, lines)]
    todo = []
    for number in range(passes):
        order = random.Random(number).sample(shapes, len(shapes))
        todo += [(number, shape) for shape in order if (number, shape) not in known]
    if not todo:
        return
    workspace = Workspace(disks, UUID, last_free(), slice_of(disks))
    with (
        TemporaryDirectory() as state,
        LiveReporter(Console(stderr=True)) as reporter,
        on_slices(workspace, Path(state), reporter) as slices,
    ):
        for done, (number, shape) in enumerate(todo):
            reporter.progress(f"{done + 1} of {len(todo)}", done / len(todo), None)
            with slices.made(shape) as bench:
                figures = shown(workload, shape, bench, 1000 * number + done)
            line = {"pass": number, "setting": shape.setting, "figures": figures}
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")


def designed(workload: Workload, levels: Iterable[str], minutes: float, out: Path) -> None:
    """A design, and what the array that it prints shows on as many bytes of it."""
    options = Options(DISKS, DISKS, workload, tuple(levels), CONSISTENCY, time_s=60 * minutes)
    with TemporaryDirectory() as state, LiveReporter(Console(stderr=True)) as reporter:
        result = design(options, Path(state), reporter)
    found = document(result, made=False)
    print_design(Console(width=100), found)
    found["as_printed"] = as_printed(workload, result)
    out.write_text(json.dumps(found) + "\n")


def as_printed(workload: Workload, result: Result) -> dict[str, Any]:
    """What the array shows that the printed command makes; it is removed."""
    subprocess.run(shlex.split(result.commands.mdadm), input=b"y\n", check=True)
    array = find_array(result.device)
    action = array.md / "sync_action"
    while action.read_text().strip() != "idle":
        time.sleep(1)
    array = find_array(result.device)
    with TemporaryDirectory() as state:
        journal = new_journal(Path(state) / "journal/x.jsonl", array.uuid, array.device, ())
        small = result.winner.shape.capacity_bytes(len(DISKS), result.workspace.slice_bytes)
        target = Target(Path(array.device), min(small, array.size_bytes))
        bench = Bench(
            array.name,
            target,
            target,
            journal,
            lambda: None,
            partial(stripe_cache.shrink, array),
            lambda _phase, _share: None,
        )
        figures = shown(workload, result.winner.shape, bench, 7)
        journal.close()
    subprocess.run(("mdadm", "--stop", result.device), check=True)
    subprocess.run(("mdadm", "--zero-superblock", *DISKS), check=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.design.guest")
    parser.add_argument("what", choices=("grid", "design"))
    parser.add_argument("--workload", required=True)
    parser.add_argument("--levels", required=True)
    parser.add_argument("--shapes", help="these alone, in JSON")
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    workload, levels = load_workload(chosen.workload), chosen.levels.split(",")
    if chosen.what == "grid":
        shapes = space(len(DISKS), tuple(levels), CONSISTENCY).shapes
        if chosen.shapes:
            shapes = [Shape.of(setting) for setting in json.loads(chosen.shapes)]
        grid(workload, shapes, chosen.passes, chosen.out)
    else:
        designed(workload, levels, chosen.minutes, chosen.out)


if __name__ == "__main__":
    main()
