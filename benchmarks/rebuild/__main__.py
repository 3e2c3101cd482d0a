"""python -m benchmarks.rebuild: creation, check and rebuild of one member, by level and disks.

Each array has its own machine in the lab. Results that are there are kept, so a run that was cut
goes on; the table is printed in the end. `--tune` adds what autotune makes of each: such an array
is measured anew, so that both were in one run.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.commit import commit

HERE = Path(__file__).parent
DISKS = {"raid1": (2,), "raid5": (4, 6, 8, 12), "raid6": (4, 6, 8, 12), "raid10": (4, 6, 8, 12)}
SCENARIO = """
[[disks]]
kind = "hdd"
count = {disks}
size_mib = {size}
transfer_mb_s = {rate}
inner_percent = 50

[[arrays]]
name = "md0"
level = "{level}"
members = {disks}
chunk_kib = 128
"""
SIZE_MIB = 512
TOTAL_MB_S = 120
"""Of all disks together, which the lab's one processor can simulate."""
COLUMNS = ("created", "said_check", "check", "said_rebuild", "rebuild")
TUNED = ("tuned_check", "tuned_rebuild")


def measured(out: Path, level: str, disks: int, tune: bool) -> None:
    """Run one array; its result is a file in `out`."""
    name = f"{level}-{disks}"
    rate = max(4, min(30, TOTAL_MB_S // disks))
    file = (out / f"{name}.json").absolute()
    inside = [sys.executable, "-m", "benchmarks.rebuild.guest", "--out", str(file)]
    inside += ["--commit", commit(HERE), *(["--tune"] if tune else [])]
    with TemporaryDirectory() as folder:
        scenario = Path(folder) / f"{name}.toml"
        scenario.write_text(SCENARIO.format(level=level, disks=disks, size=SIZE_MIB, rate=rate))
        lab = (sys.executable, "-m", "autotune.lab", "--out", str(file.parent), str(scenario))
        subprocess.run((*lab, "--", *inside), check=True)


def table(found: dict[str, dict[str, Any]]) -> Table:
    """In seconds, a row for each array."""
    columns = [c for c in (*COLUMNS, *TUNED) if any(f"{c}_s" in row for row in found.values())]
    shown = Table("array", *(c.replace("_", " ") for c in columns), box=None)
    for name, row in found.items():
        cells = (f"{row[f'{c}_s']:.0f} s" if f"{c}_s" in row else "–" for c in columns)
        shown.add_row(name, *cells)
    return shown


def is_there(file: Path, tune: bool) -> bool:
    return file.exists() and (not tune or "tuning" in json.loads(file.read_text()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rebuild")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the results")
    parser.add_argument("--levels", default=",".join(DISKS))
    parser.add_argument("--disks", type=int, help="of this number of disks alone")
    parser.add_argument("--tune", action="store_true", help="also with what autotune makes of it")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for level in chosen.levels.split(","):
        for disks in DISKS[level]:
            if chosen.disks not in (None, disks):
                continue
            file = chosen.out / f"{level}-{disks}.json"
            if not chosen.print and not is_there(file, chosen.tune):
                measured(chosen.out, level, disks, chosen.tune)
            if file.exists():
                found[f"{level}-{disks}"] = json.loads(file.read_text())
    Console().print(table(found))
    commits = ", ".join(dict.fromkeys(row["commit"] for row in found.values()))
    Console().print(f"Measured at {commits}.")


if __name__ == "__main__":
    main()
