"""Two settings side by side, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.deploy.compare import Row, Side
from autotune.report.text_table import TextTable


def print_rows(
    console: Console, a: Side, b: Side, knobs: Sequence[Row], classes: Sequence[Row]
) -> None:
    """All knobs, and of what they are for only what differs."""
    table = TextTable("", a.name, b.name, "", right=[1, 2])
    for row in (*knobs, *(each for each in classes if not each.same)):
        shown = ("–" if value is None else str(value) for value in (row.a, row.b))
        left, right = shown
        table.add_row(Text(row.what), Text(left), Text(right), "" if row.same else "differs")
    console.print(table)
    for each in (a, b):
        if each.fault is not None:
            console.print(Text(f"{each.name} cannot be applied: {each.fault}"))
    if all(row.same for row in knobs):
        console.print("They set the same values." if knobs else "Neither sets anything.")


def document(a: Side, b: Side, knobs: Sequence[Row], classes: Sequence[Row]) -> dict[str, Any]:
    """The same for programs. `same`: whether all knobs are; a value is null where a side does not
    set it. `class`: what they are for, where both say so. `faults`: why one could be applied
    nowhere."""
    return {
        "a": a.name,
        "b": b.name,
        "same": all(row.same for row in knobs),
        "faults": {each.name: each.fault for each in (a, b) if each.fault is not None},
        "knobs": {row.what: {"a": row.a, "b": row.b, "same": row.same} for row in knobs},
        "class": {row.what: {"a": row.a, "b": row.b, "same": row.same} for row in classes},
    }
