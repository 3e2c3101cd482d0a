"""python -m benchmarks.published: published tables of md settings, measured again in the lab.

Each table has a lab of its own. Results that are there are kept, so a run that was cut goes on.
Absolute figures are those of other disks, so only steps from row to row are held side by side.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.quantities import show_latency, show_seconds
from benchmarks.published.tables import ARRAY, Published, Rounds, Step, steps, tables

SCENARIO = """
[[disks]]
kind = "hdd"
count = {disks}
size_mib = 256
# Slow ones, so that the disks set the pace and not the lab's one processor.
transfer_mb_s = 8

[[arrays]]
name = "md0"
level = "{level}"
members = {disks}
chunk_kib = 64
"""


def run(table: Published, path: Path) -> None:
    """Measure one table in its lab, into the file."""
    if table.setting != ARRAY:
        in_the_lab(table.name, table.scenario_path, path)
        return
    found: dict[str, object] = {}
    for value in map(str, table.values):
        level, _, disks = value.partition("-")
        scenario, part = path.with_name(f"{value}.toml"), path.with_name(f"{value}.json")
        scenario.write_text(SCENARIO.format(level=level, disks=disks))
        if not part.exists():
            in_the_lab(table.name, scenario, part)
        found[value] = json.loads(part.read_text())
    path.write_text(json.dumps(found, indent=1) + "\n")


def in_the_lab(name: str, scenario: Path, path: Path, *options: str) -> None:
    """Boot a scenario, and measure there what a table asks for."""
    lab = ("-m", "autotune", "lab", str(scenario), "--out", str(path.parent), "--")
    inside = ("-m", "benchmarks.published.guest", name, "--out", str(path), *options)
    subprocess.run((sys.executable, *lab, sys.executable, *inside), check=True)


def found_by_itself(table: Published, found: Mapping[str, Any]) -> list[str]:
    """What `autotune run` tried and kept, as lines of text, the smallest value first."""
    tried = []
    for point in found["points"]:
        name, _, value = point["setting"].rpartition(" ")
        if name == table.setting:
            gain = point["gain"]
            span = f"×{gain['value']:.2f} ({gain['low']:.2f}–{gain['high']:.2f})"
            tried.append((int(value), f"  {value:>12} {'':15} {span}"))
    gain = found["gain"]
    kept = " and ".join(f"{change['knob']} {change['after']}" for change in found["changes"])
    return [
        f"  autotune run {table.run}, by itself, in {show_seconds(found['seconds'])}:",
        *(line for _, line in sorted(tried)),
        f"  kept: {kept}, ×{gain['ratio']:.2f} ({gain['low']:.2f}–{gain['high']:.2f})"
        if kept
        else "  kept: the original settings",
    ]


def shown(table: Published, rounds: Rounds) -> list[str]:
    """The table as lines of text."""
    count = len(next(iter(rounds.values())))
    lines = [f"{table.name}, {count} rounds: {table.says}"]
    for value, seen in rounds.items():
        means = {name: sum(each[name] for each in seen) / len(seen) for name in seen[0]}
        cells = "  ".join(f"{name} {_figure(name, mean)}" for name, mean in means.items())
        given = table.here(int(value)) if value.isdigit() else value
        lines.append(f"  {value:>12} {f'({given} here)' if str(given) != value else '':15} {cells}")
    lines += [_line(step) for step in steps(table, rounds)]
    return [*lines, f"  {table.note}"] if table.note else lines


def _figure(name: str, value: float) -> str:
    if name.endswith("time"):
        return show_seconds(value)
    return f"{value / 1e6:.0f} MB/s" if name.endswith("throughput") else show_latency(value)


def _line(step: Step) -> str:
    said = step.published if isinstance(step.published, str) else f"×{step.published:.2f}"
    here = f"×{step.here.ratio:.2f} ({step.here.low:.2f}–{step.here.high:.2f})"
    way = f"{step.before} → {step.after}"
    return f"  {step.figure:17} {way:20} published {said:6} here {here:20} {step.verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published", description=__doc__)
    known = tables()
    parser.add_argument("--table", action="append", choices=known, help="repeatable; default: all")
    parser.add_argument("--out", type=Path, default=Path("published"), help="folder of the results")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.table or known:
        path = chosen.out.resolve() / f"{name}.json"
        if not path.exists():
            run(known[name], path)
        lines = shown(known[name], json.loads(path.read_text()))
        if known[name].run:
            own = path.with_name(f"{name}-run.json")
            if not own.exists():
                in_the_lab(name, known[name].scenario_path, own, "--run")
            lines += found_by_itself(known[name], json.loads(own.read_text()))
        print("\n".join(lines), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
