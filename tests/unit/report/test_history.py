"""The trials of a run as a table."""

import dataclasses
import io

import pytest
from rich.console import Console
from store_records import record
from synthetic_run import problem, run

from autotune.problem.figure import Estimate
from autotune.report.history import _figures, _trials, as_it_is


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


@pytest.mark.parametrize(
    ("lab", "inside", "said"),
    [
        (False, False, ("interrupted", "Killed.")),
        (True, True, ("interrupted", "Killed.")),
        (True, False, ("running", "Under way in the lab, or killed there.")),
    ],
)
def test_a_run_in_the_lab_cannot_be_seen_from_outside(
    lab: bool, inside: bool, said: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AUTOTUNE_LAB", raising=False)
    if inside:
        monkeypatch.setenv("AUTOTUNE_LAB", "1")
    seen = as_it_is(run("running", {**problem(), "lab": lab}))
    assert (seen.state, seen.outcome) == said
