"""In the lab: set what the array begins with, run the plain command, and let fio judge it."""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autotune.knobs import for_array, plan, read_setting
from autotune.measure.workload import load_workload
from autotune.problem.setting import Setting
from autotune.store import TrialRecord
from autotune.store.database import Store
from autotune.system.array import Array, find_array
from benchmarks.panel.entries import Entry, entries
from benchmarks.panel.judge import ROUNDS, Judge, broken, gained

DEVICE = "/dev/md0"
STATE_DIR = Path("/var/lib/autotune")
TAIL = 2000


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.panel.guest")
    parser.add_argument("array")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the code that is measured")
    parser.add_argument("--time")
    chosen = parser.parse_args()
    entry = entries()[chosen.array]
    result = {"commit": chosen.commit, **run(entry, chosen.seed, chosen.time)}
    partial = chosen.out.with_suffix(".part")
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.replace(chosen.out)


def run(entry: Entry, seed: int, time_limit: str | None) -> dict[str, Any]:
    """One run and what fio says of it, as a document."""
    array = find_array(DEVICE)
    knobs = for_array(array)
    for write in plan(array, {**read_setting(array, knobs), **entry.start}, knobs):
        write.path.write_text(write.text)
    start = read_setting(array, knobs)
    command = ["autotune", "run", DEVICE, "--json", "--seed", str(seed)]
    command += ["--time", time_limit] if time_limit else []
    began = time.monotonic()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    result: dict[str, Any] = {
        "array": entry.name,
        "seed": seed,
        "time": time_limit,
        "command": " ".join(command),
        "start": dict(start),
        "status": done.returncode,
        "said": done.stderr[-TAIL:],
        "seconds": time.monotonic() - began,
        "load": os.getloadavg(),
    }
    if done.returncode:
        return result
    answer = json.loads(done.stdout)
    kept = {**start, **answer["winner"]} if answer["adopt"] else start
    keep = ("adopt", "reason", "winner", "gain", "figures", "searched", "trials", "seconds")
    result["answer"] = {name: answer.get(name) for name in (*keep, "spent")}
    trials = Store(STATE_DIR).trials(answer["run"])
    result["over_s"] = seconds_over(answer["figures"], trials)
    result["trial_s"] = sum(trial.seconds for trial in trials)
    result["trials"] = [
        {
            "role": trial.role,
            "status": trial.status,
            "changed": {k: v for k, v in trial.requested.items() if v != start[k]},
            "figures": {name: estimate.value for name, estimate in trial.figures.items()},
        }
        for trial in trials
    ]
    result["judged"] = judged(array, entry, start, kept)
    return result


def seconds_over(figures: dict[str, Any], trials: list[TrialRecord]) -> float:
    """The seconds of phases with a p99 over its ceiling, and over all that the original settings
    themselves showed. A trial's seconds are divided as its phases usually take them."""
    limits = {}
    for name, about in figures.items():
        own = [t.figures[name].value for t in trials if "baseline" in t.role and name in t.figures]
        if about["ceiling"] is not None and own:
            limits[name] = max(about["ceiling"], *own)
    phases = load_workload("balanced").phases
    usual = {phase.name: phase.expected_seconds + phase.growth_s for phase in phases}
    seconds = 0.0
    for trial in trials:
        over = {name.partition(".")[0] for name in limits if passes(trial, name, limits[name])}
        # A long load is a trial of its own.
        whole = sum(usual.get(name, 1.0) for name in trial.measured)
        if whole:
            hurt = sum(usual.get(name, 1.0) for name in trial.measured if name in over)
            seconds += trial.seconds * hurt / whole
    return seconds


def passes(trial: TrialRecord, name: str, limit: float) -> bool:
    estimate = trial.figures.get(name)
    return estimate is not None and estimate.value > limit


def judged(array: Array, entry: Entry, start: Setting, kept: Setting) -> dict[str, Any]:
    """What fio says of what was kept, and of the best that is known, against the start."""
    best = {**start, **(entry.best or start)}
    sides = {"start": start}
    sides |= {"kept": kept} if kept != start else {}
    sides |= {"best": best} if best not in (start, kept) else {}
    filesystem = entry.lab.filesystem
    mount = Path(filesystem.mount) if filesystem else None
    if len(sides) == 1:
        found = {"start": [{"": 1.0}]}
    else:
        print(f"fio measures {', '.join(sides)}, {ROUNDS} times each", file=sys.stderr)
        found = dict(Judge(array, mount).compare(sides))
    settings = {"start": start, "kept": kept, "best": best}
    # The first of those that are alike stands for them.
    of = {
        name: next(side for side in sides if sides[side] == settings[name])
        for name in ("kept", "best")
    }
    document: dict[str, Any] = {"measured": found, "best_known": entry.best is not None}
    for name, side in of.items():
        moved = side != "start"
        document[name] = {
            "gain": asdict(gained(found["start"], found[side])) if moved else None,
            "broken": broken(found["start"], found[side]) if moved else [],
        }
    return document


if __name__ == "__main__":
    main()
