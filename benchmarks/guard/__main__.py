"""python -m benchmarks.guard: rebuilds under `autotune guard`, beside users who come and go.

Three tables: rebuilds under a ceiling and a deadline on several arrays; one under a ceiling beside
fixed limits; the policies. Each array has its own machine in the lab. What is there is kept, so a
run that was cut goes on, rebuild by rebuild. A row has the commit that it was got with.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.quantities import show_seconds
from benchmarks.commit import commit
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
IMPOSSIBLE = "cannot be over by"


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


def held(row: Mapping[str, Any]) -> str:
    return f"{row['held']} of {row['windows']}"


def dates_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    found = Table("array", "took", "deadline", "p99 held", "at arrival", "both possible", box=None)
    for row in rows:
        found.add_row(
            row["array"],
            show_seconds(row["seconds"]),
            f"{show_seconds(row['date_s'])}, {'met' if is_met(row) else 'missed'}",
            held(row),
            f"{row['held_at_arrival']} of {row['arrivals']}",
            "yes" if is_possible(row) else "said not",
        )
    return found


def is_met(row: Mapping[str, Any]) -> bool:
    return bool(row["seconds"] <= row["date_s"])


def is_possible(row: Mapping[str, Any]) -> bool:
    """Whether the guard did not say otherwise."""
    return IMPOSSIBLE not in " ".join(row["said"].split())


def dates_summary(rows: Sequence[Mapping[str, Any]]) -> str:
    possible = [row for row in rows if is_possible(row)]
    held, windows, met, arrivals = (
        sum(row[name] for row in possible)
        for name in ("held", "windows", "held_at_arrival", "arrivals")
    )
    whole = f"Deadline met in {sum(map(is_met, rows))} of {len(rows)}."
    if not possible:
        return f"{whole} Both were possible in none."
    return (
        f"{whole} Both were possible in {len(possible)}; of these it was met in "
        f"{sum(map(is_met, possible))}, and the ceiling held in {held} of {windows} half minutes; "
        f"with the first ones after users came, in {held + met} of {windows + arrivals}."
    )


def plain_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    found = Table("", "rebuild", "p99 held", "p99 of all", box=None)
    for row in rows:
        p99 = f"{row['p99_ms']:.0f} ms"
        found.add_row(row["name"], show_seconds(row["seconds"]), held(row), p99)
    return found


def about(rows: Sequence[Mapping[str, Any]]) -> str:
    """What the rows of one array are held against."""
    row = rows[0]
    return (
        f"{row['array']}: {show_seconds(row['full_s'])} at full speed without users; p99 "
        f"{row['quiet_ms']:.0f} ms without a rebuild, {row['full_ms']:.0f} ms at full speed; "
        f"ceiling {row['ceiling_ms']:.0f} ms."
    )


def measured_at(rows: Sequence[Mapping[str, Any]]) -> str:
    return f"Measured at {', '.join(dict.fromkeys(row['commit'] for row in rows))}."


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
        console.print(dates_table(rows))
        console.print(dates_summary(rows), measured_at(rows))
    for part in ("policies", "ladder"):
        if rows := read(chosen.out, part):
            console.print(about(rows), measured_at(rows))
            console.print(plain_table(rows))


if __name__ == "__main__":
    main()
