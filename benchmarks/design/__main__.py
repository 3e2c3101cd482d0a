"""python -m benchmarks.design: a design of five disks beside a complete grid of chunks and layouts.

For each workload: every shape of the levels is measured, twice, in random order; then `design` has
30 minutes, and what it prints is made and measured. The best of 35 is the luckiest of them, too. So
what `design` chose, mdadm's default and the best of the grid are then measured in turn, four times
each, and these decide. All that is there is kept, so a run that was cut goes on.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.design.search import limited
from autotune.design.shape import Shape
from autotune.design.space import space
from autotune.measure.workload import load_workload
from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures, broken_ceilings, gain
from autotune.results.proof import mean

SCENARIO = Path(__file__).with_name("disks.toml")
RESULTS = Path(__file__).with_name("results")
WORKLOADS = "streaming,database"
LEVELS = "raid10,raid5"
CLOSE = 0.97
BEST, TURNS = 2, 4
"""So many of the grid are measured once more, so often."""
DISKS = 5


def inside(out: Path, *words: str) -> None:
    """Run a part in the lab, with `out` shared."""
    command = (sys.executable, "-m", "autotune.lab", "--out", str(out), str(SCENARIO), "--")
    guest = (sys.executable, "-m", "benchmarks.design.guest", *words)
    subprocess.run((*command, *guest), check=True)


def figures(shown: Mapping[str, Sequence[float]]) -> Figures:
    return {name: Estimate(value, spread) for name, (value, spread) in shown.items()}


def scores(grid: Path, workload: str, levels: Sequence[str]) -> dict[Shape, float]:
    """The gain of every shape that holds the ceilings of a design, beside the default's."""
    seen: dict[Shape, list[Figures]] = {}
    for line in map(json.loads, grid.read_text().splitlines()):
        seen.setdefault(Shape.of(line["setting"]), []).append(figures(line["figures"]))
    default = mean(seen[space(DISKS, levels, ("bitmap",)).default])
    asked = load_workload(workload)
    held = limited(asked.figures, asked.limits, default)
    found = {}
    for shape, each in seen.items():
        known = mean(each)
        score = gain(held, known, default)
        if score is not None and not broken_ceilings(held, known, default):
            found[shape] = score.value
    return found


def designed(out: Path, workload: str) -> dict[str, Any]:
    """What `design` said."""
    return dict(json.loads((out / f"design-{workload}.json").read_text()))


def finalists(out: Path, workload: str, levels: Sequence[str]) -> list[Shape]:
    """What is measured in turn: the default, what was chosen, and the best of the grid."""
    known = scores(out / f"grid-{workload}.jsonl", workload, levels)
    best = sorted(known, key=lambda shape: -known[shape])[:BEST]
    chosen = Shape.of(designed(out, workload)["winner"])
    return list(dict.fromkeys([space(DISKS, levels, ("bitmap",)).default, chosen, *best]))


def row(out: Path, workload: str, levels: Sequence[str]) -> list[str]:
    """What was found, beside the best of the grid, both as measured in turn."""
    known = scores(out / f"turns-{workload}.jsonl", workload, levels)
    best = max(known, key=lambda shape: known[shape])
    found = designed(out, workload)
    chosen = Shape.of(found["winner"])
    share = known.get(chosen, 0.0) / known[best]
    said = next(each for each in found["finalists"] if each["setting"] == found["winner"])
    told = {n: Estimate(e["value"], 0.0) for n, e in said["figures"].items()}
    asked = load_workload(workload).figures
    again = gain(asked, figures(found["as_printed"]), told)
    return [
        workload,
        f"{best} ×{known[best]:.2f}",
        f"{chosen} ×{known.get(chosen, 0.0):.2f}",
        f"{share:.3f} {'yes' if share >= CLOSE else 'NO'}",
        f"×{again.value:.2f}" if again else "–",
        f"{found['seconds'] / 60:.0f} min",
    ]


def fill(out: Path, workload: str, levels: Sequence[str], passes: int, minutes: float) -> None:
    """Measure what is not there yet."""
    common = ("--workload", workload, "--levels", ",".join(levels))
    file = str(out / f"grid-{workload}.jsonl")
    inside(out, "grid", *common, "--passes", str(passes), "--out", file)
    if not (out / f"design-{workload}.json").exists():
        file = str(out / f"design-{workload}.json")
        inside(out, "design", *common, "--minutes", str(minutes), "--out", file)
    shapes = json.dumps([each.setting for each in finalists(out, workload, levels)])
    turns = ("--shapes", shapes, "--passes", str(TURNS))
    inside(out, "grid", *common, *turns, "--out", str(out / f"turns-{workload}.jsonl"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.design")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--workloads", default=WORKLOADS)
    parser.add_argument("--levels", default=LEVELS)
    parser.add_argument("--passes", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--show", action="store_true", help="print what there is, measure nothing")
    chosen = parser.parse_args()
    out, levels = chosen.out.absolute(), chosen.levels.split(",")
    out.mkdir(parents=True, exist_ok=True)
    table = Table("workload", "best", "chosen", "share", "as printed", "took", box=None)
    for workload in chosen.workloads.split(","):
        if not chosen.show:
            fill(out, workload, levels, chosen.passes, chosen.minutes)
        table.add_row(*row(out, workload, levels))
    Console().print(table)


if __name__ == "__main__":
    main()
