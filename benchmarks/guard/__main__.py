"""python -m benchmarks.guard: rebuilds under `autotune guard`, beside users who come and go.

Three tables: rebuilds under a ceiling and a deadline on several arrays; one under a ceiling beside
fixed limits; the policies. Each array has its own machine in the lab. What is there is kept, so a
run that was cut goes on, rebuild by rebuild. A row has the commit that it was got with.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from benchmarks.commit import commit
from benchmarks.guard import tables
from benchmarks.guard.guest import PARTS, ROWS, read_rows

HERE = Path(__file__).parent
ARRAYS = ("raid1-2hdd", "raid1-2ssd", "raid5-4hdd", "raid5-4ssd", "raid6-5hdd", "raid10-4hdd")
IOPS = {"hdd": 15, "ssd": 100}
# Slow ones, so that the disks set the pace; large ones, so that there are minutes to learn in.
DISKS = {
    "hdd": "transfer_mb_s = 30\ninner_percent = 50",
    "ssd": "bandwidth_mb_s = 40\nsustained_mb_s = 40",
}
SCENARIO = """
[[disks]]
kind = "{kind}"
count = {count}
size_mib = 3072
{speed}

[[arrays]]
name = "md0"
level = "{level}"
members = {count}
chunk_kib = 128
"""
ONE = "raid5-4hdd"
"""The array of the ladder and the policies."""


def jobs() -> list[tuple[str, str]]:
    """What is measured: a part, and the array for it."""
    return [*(("dates", name) for name in ARRAYS), ("policies", ONE), ("ladder", ONE)]


def measured(out: Path, part: str, name: str) -> None:
    """Run a part in the lab, or go on with it; its rows are a file in `out`."""
    level, _, disks = name.partition("-")
    kind = disks[-3:]
    text = SCENARIO.format(level=level, count=disks[:-3], kind=kind, speed=DISKS[kind])
    rows = path(out, part, name).absolute()
    inside = [sys.executable, "-m", "benchmarks.guard.guest", part, "--commit", commit(HERE)]
    inside += ["--iops", str(IOPS[kind]), "--out", str(rows)]
    with TemporaryDirectory() as folder:
        scenario = Path(folder) / f"{name}.toml"
        scenario.write_text(text)
        lab = (sys.executable, "-m", "autotune.lab", "--out", str(rows.parent), str(scenario))
        subprocess.run((*lab, "--", *inside), check=True)


def read(out: Path, part: str) -> list[dict[str, Any]]:
    """The rows of a part, of every array."""
    files = [path(out, part, name) for each, name in jobs() if each == part]
    return [row for file in files for row in read_rows(file)]


def path(out: Path, part: str, name: str) -> Path:
    return out / f"{part}-{name}.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the rows")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    parser.add_argument("--array", choices=ARRAYS, action="append", help="repeatable; default: all")
    parser.add_argument("parts", nargs="*", help="of dates, policies, ladder; all by default")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    for part, name in () if chosen.print else jobs():
        wanted = part in (chosen.parts or PARTS) and name in (chosen.array or ARRAYS)
        if wanted and len(read_rows(path(chosen.out, part, name))) < ROWS[part]:
            measured(chosen.out, part, name)
    console = Console()
    if rows := read(chosen.out, "dates"):
        console.print(tables.dates(rows))
        console.print(tables.dates_summary(rows), tables.measured_at(rows))
    for part, table in (("policies", tables.policies), ("ladder", tables.ladder)):
        if rows := read(chosen.out, part):
            console.print(tables.about(rows), tables.measured_at(rows))
            console.print(table(rows))


if __name__ == "__main__":
    main()
