"""python -m benchmarks.forecast: how near forecasts come to the rebuilds that follow them.

Boots each array of `arrays/` in the lab, idle and with a foreground, and prints a row for each
rebuild: what was forecast, what came, their ratio. Forecasts and outcomes are kept in a folder, so
a run that was cut goes on; `--print` judges what is there, by the model as it is now.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.quantities import show_seconds
from autotune.sync_forecast.model import from_document
from benchmarks.forecast.rebuild import compared

ARRAYS = Path(__file__).parent / "arrays"
IOPS = {"hdd": (0, 15), "ssd": (0, 100)}
NEAR_TIME, NEAR_P99 = 0.15, 0.30
"""As far as a ratio may be from 1 to count as near."""


def measured(out: Path, scenario: Path, iops: int) -> None:
    """Run one array in the lab; its rows are added to `out`/rows.jsonl."""
    inside = (sys.executable, "-m", "benchmarks.forecast.rebuild", "/dev/md0")
    subprocess.run(
        (
            *(sys.executable, "-m", "autotune.lab", "--out", str(out), str(scenario), "--"),
            *(*inside, "--iops", str(iops), "--out", str(out / "rows.jsonl")),
        ),
        check=True,
    )


def read_rows(out: Path) -> list[dict[str, Any]]:
    """What came, beside what the kept forecasts say of it now."""
    file = out / "rows.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    rows = []
    for came in map(json.loads, lines):
        kept = out / f"{came['array']}-{came['iops']}.json"
        forecast = from_document(json.loads(kept.read_text()))
        p99_ns = came["p99_ms"] * 1e6 if "p99_ms" in came else None
        rows.append({**came, **compared(forecast, came["share"], came["took_s"], p99_ns)})
    return rows


def table(rows: Sequence[dict[str, Any]]) -> Table:
    """Rows as a table that fits 80 columns."""
    found = Table("array", "iops", "speed", "time", "ratio", "p99 ms", "ratio", "held", box=None)
    for row in rows:
        p99 = f"{row['p99_ms']:.0f}" if "p99_ratio" in row else "–"
        held = [row["time_held"], *([row["p99_held"]] if "p99_held" in row else [])]
        found.add_row(
            row["array"],
            str(row["iops"]),
            f"{row['share']:.0%}",
            show_seconds(row["took_s"]),
            f"{row['time_ratio']:.2f}",
            p99,
            f"{row['p99_ratio']:.2f}" if "p99_ratio" in row else "–",
            ", ".join("yes" if each else "no" for each in held),
        )
    return found


def summary(rows: Sequence[dict[str, Any]]) -> list[str]:
    """How many were near, and how many intervals held."""
    felt = [row for row in rows if "p99_ratio" in row]
    near = [row for row in rows if abs(row["time_ratio"] - 1) <= NEAR_TIME]
    # Below full speed md keeps to a limit, which says how long it takes.
    full = [row for row in rows if row["share"] >= 1]
    near_p99 = sum(abs(row["p99_ratio"] - 1) <= NEAR_P99 for row in felt)
    return [
        f"Time within {NEAR_TIME:.0%}: {len(near)} of {len(rows)}, at full speed "
        f"{sum(row in full for row in near)} of {len(full)}; its interval held in "
        f"{sum(row['time_held'] for row in rows)}.",
        f"p99 within {NEAR_P99:.0%}: {near_p99} of {len(felt)}; its interval held in "
        f"{sum(row['p99_held'] for row in felt)}.",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecast")
    parser.add_argument("--out", type=Path, default=Path("forecasts"), help="folder of the rows")
    parser.add_argument("--print", action="store_true", help="measure nothing")
    parser.add_argument("arrays", nargs="*", help="of benchmarks/forecast/arrays; all by default")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    names = chosen.arrays or sorted(path.stem for path in ARRAYS.glob("*.toml"))
    for name in () if chosen.print else names:
        for iops in IOPS[name[-3:]]:
            if not any(
                (row["array"], row["iops"]) == (name, iops) for row in read_rows(chosen.out)
            ):
                measured(chosen.out, ARRAYS / f"{name}.toml", iops)
    console, rows = Console(), read_rows(chosen.out)
    console.print(table(rows))
    for line in summary(rows):
        console.print(line)


if __name__ == "__main__":
    main()
