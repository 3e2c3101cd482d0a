"""What the rebuilds of `benchmarks.guard` say, as tables."""

import math
from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from rich.table import Table

from autotune.quantities import show_seconds
from autotune.stats.batch_means import student_t
from benchmarks.guard.guest import DATES

IMPOSSIBLE = "cannot be over by"
EASY = f"deadline ×{max(DATES):.0f}"
GUARD = "guard"
"""The name of the rows under guard, in a ladder of fixed limits."""
Rows = Sequence[Mapping[str, Any]]


def held(rows: Rows) -> str:
    return f"{sum(row['held'] for row in rows)} of {sum(row['windows'] for row in rows)}"


def dates(rows: Rows) -> Table:
    found = Table("array", "took", "deadline", "p99 held", "at arrival", "said", box=None)
    for row in rows:
        found.add_row(
            row["array"],
            show_seconds(row["seconds"]),
            f"{show_seconds(row['date_s'])}, {'met' if is_met(row) else 'missed'}",
            held([row]),
            f"{row['held_at_arrival']} of {row['arrivals']}",
            "impossible" if is_said_impossible(row) else "–",
        )
    return found


def is_met(row: Mapping[str, Any]) -> bool:
    return bool(row["seconds"] <= row["date_s"])


def is_said_impossible(row: Mapping[str, Any]) -> bool:
    """Whether the guard said that the deadline and the ceiling exclude each other."""
    return IMPOSSIBLE in " ".join(row["said"].split())


def dates_summary(rows: Rows) -> str:
    easy = [row for row in rows if row["name"] == EASY]
    if not easy:
        return f"Deadline met in {sum(map(is_met, rows))} of {len(rows)}."
    kept, windows, met, arrivals = (
        sum(row[name] for row in easy)
        for name in ("held", "windows", "held_at_arrival", "arrivals")
    )
    return (
        f"Deadline met in {sum(map(is_met, rows))} of {len(rows)}. Both are possible with the "
        f"second deadline of each: it was met in {sum(map(is_met, easy))} of {len(easy)}, and the "
        f"ceiling held in {kept} of {windows} half minutes; with the first ones after users came, "
        f"in {kept + met} of {windows + arrivals}."
    )


def policies(rows: Rows) -> Table:
    found = Table("", "rebuild", "p99 held", "p99 of all", box=None)
    for row in rows:
        p99 = f"{row['p99_ms']:.0f} ms"
        found.add_row(row["name"], show_seconds(row["seconds"]), held([row]), p99)
    return found


def ladder(rows: Rows) -> Table:
    """Each fixed limit beside the guard of the same repetition; means, and 95 % intervals."""
    by_name: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    found = Table("", "rebuild", "times guard's", "p99 held", "p99", "times guard's", box=None)
    for name, repeated in by_name.items():
        seconds, p99_ms = (mean(row[each] for row in repeated) for each in ("seconds", "p99_ms"))
        found.add_row(
            name,
            show_seconds(seconds),
            beside(repeated, by_name[GUARD], "seconds"),
            held(repeated),
            f"{p99_ms:.0f} ms",
            beside(repeated, by_name[GUARD], "p99_ms"),
        )
    return found


def beside(rows: Rows, guard: Rows, figure: str) -> str:
    """The geometric mean of a figure over the guard's in the same repetition; its 95 % interval,
    of two repetitions or more."""
    logs = [math.log(row[figure] / other[figure]) for row, other in zip(rows, guard, strict=False)]
    centre = mean(logs)
    if rows is guard or len(logs) < 2:
        return f"{math.exp(centre):.2f}"
    half = student_t(len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return f"{math.exp(centre):.2f} ({math.exp(centre - half):.2f}–{math.exp(centre + half):.2f})"


def about(rows: Rows) -> str:
    """What the rows of one array are held against."""
    row = rows[0]
    return (
        f"{row['array']}: {show_seconds(row['full_s'])} at full speed without users; p99 "
        f"{row['quiet_ms']:.0f} ms without a rebuild, {row['slow_ms']:.0f} ms beside one at an "
        f"eighth of that speed, {row['full_ms']:.0f} ms at full speed; "
        f"ceiling {row['ceiling_ms']:.0f} ms."
    )


def measured_at(rows: Rows) -> str:
    return f"Measured at {', '.join(dict.fromkeys(row['commit'] for row in rows))}."
