"""python -m benchmarks.panel: `autotune run /dev/md0` on real arrays, judged by fio afterwards.

Each run is one lab and one result file; what is there already is not run again, so it may be cut
at any time and gone on with, an array at a time. A result has the commit that it was got with:
delete those that a change has made untrue.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import UsageError
from benchmarks.commit import commit
from benchmarks.panel.entries import HERE, Entry, entries, result_path
from benchmarks.panel.table import HEADING, Row, line, row, totals

LONGEST_S = 4 * 3600


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel", description=__doc__)
    known = entries()
    parser.add_argument("--array", action="append", choices=known, help="repeatable; default: all")
    parser.add_argument("--seeds", type=int, default=3, help="runs on each array")
    parser.add_argument("--time", help="--time of the runs: a sample, and not the default")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--best", action="store_true", help="only look for the best settings")
    parser.add_argument("--show", action="store_true", help="only print what there is")
    chosen = parser.parse_args()
    chosen.results.mkdir(parents=True, exist_ok=True)
    array_entries = [known[name] for name in chosen.array or known]
    if chosen.best:
        return max(look_for_best(entry) for entry in array_entries)
    rows: list[Row] = []
    print(HEADING)
    for entry in array_entries:
        for seed in range(chosen.seeds):
            path = result_path(chosen.results, entry.name, seed, chosen.time)
            if not path.exists() and not chosen.show:
                run(entry, seed, chosen.time, path)
            if path.exists():
                rows.append(row(entry, json.loads(path.read_text())))
                print(line(rows[-1]), flush=True)
    print("\n".join(totals(rows)))
    return 0


def run(entry: Entry, seed: int, time: str | None, path: Path) -> None:
    """One run in a lab of its own, into the file."""
    try:
        # An array that begins at a best that nobody knows is told of before the lab boots.
        entry.start  # noqa: B018
    except UsageError as error:
        print(error, file=sys.stderr)
        return
    command = ["benchmarks.panel.guest", entry.name, "--seed", str(seed), "--commit", commit(HERE)]
    command += ["--out", str(path.resolve())] + (["--time", time] if time else [])
    in_lab(entry, path.parent, command)


def look_for_best(entry: Entry) -> int:
    """Look for the best setting of the entry's scenario, or go on with that."""
    if entry.best is not None:
        print(f"{entry.scenario}: {entry.best}")
        return 0
    path = entry.best_path.resolve()
    return in_lab(entry, path.parent, ["benchmarks.panel.best", entry.scenario, "--out", str(path)])


def in_lab(entry: Entry, out: Path, module: Sequence[str]) -> int:
    out.mkdir(parents=True, exist_ok=True)
    lab = ["-m", "autotune", "lab", str(entry.scenario_path), "--out", str(out.resolve()), "--"]
    command = [sys.executable, *lab, sys.executable, "-m", *module]
    return subprocess.run(command, check=False, timeout=LONGEST_S).returncode


if __name__ == "__main__":
    sys.exit(main())
