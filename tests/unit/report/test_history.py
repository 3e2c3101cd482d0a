"""The trials of a run as a table."""

import dataclasses
import io

from rich.console import Console
from store_records import record

from autotune.problem.figure import Estimate
from autotune.report.history import _figures, _trials


def _text(table: object) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(table)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_what_was_carried_over_is_not_shown_as_measured() -> None:
    first = dataclasses.replace(
        record(1),
        figures={"read.throughput": Estimate(150e6, 0.1), "idle.p99": Estimate(56.4e6, 0.1)},
        measured=("read", "idle"),
    )
    second = dataclasses.replace(first, number=2, measured=("read",))
    rows = [line.split() for line in _text(_figures([first, second])).splitlines()]
    assert rows[-2:] == [["1", "150", "56.4"], ["2", "150", "="]]


def test_how_each_trial_ended_is_said() -> None:
    text = _text(_trials([record(1)], record(1).requested))
    assert "aborted" in text
    assert "reason 1" in text
