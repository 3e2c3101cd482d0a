"""A result as a terminal shows it."""

import dataclasses
import io
from pathlib import Path

import pytest
from fake_run import Machine
from rich.console import Console

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.strategy import KnobShare
from autotune.report.result import print_result
from autotune.report.tables import show_span


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (1.004, 1.051, "1.004 to 1.05"),
        (0.84, 0.996, "0.84 to 0.996"),
        (1.0, 1.0, "1.00 to 1.00"),
        (0.001, 300.0, "<0.01 to >100"),
    ],
)
def test_an_interval_that_ends_beside_1_is_not_shown_to_end_there(
    low: float, high: float, shown: str
) -> None:
    assert show_span(low, high) == shown


@pytest.mark.parametrize(("more", "parts"), [({}, 0), ({"read_ahead_kb": 2048}, 2)])
def test_a_change_that_is_alone_is_given_no_other_figure_than_the_measured_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: Setting, parts: int
) -> None:
    """What the models make of it would be another one, and wider."""
    result = Machine(tmp_path, monkeypatch).run("recipe")
    winner = {**result.baseline, "stripe_cache_size": 4096, **more}
    share = Estimate(1.5, 0.2)
    changed = ("stripe_cache_size", *more)
    shares = tuple(KnobShare(k, result.baseline[k], winner[k], share, True) for k in changed)
    result = dataclasses.replace(result, winner=winner, keep=True, shares=shares)
    out = io.StringIO()
    print_result(
        Console(file=out, width=80, color_system=None), result, None, "0 B of RAM (as before)"
    )
    said = out.getvalue()
    assert "→ 4096" in said
    assert said.count("×1.50") == parts
    assert ("is an estimate from" in said) == bool(parts)


@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_a_change_of_which_nothing_is_shown_by_itself_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spread: float
) -> None:
    result = Machine(tmp_path, monkeypatch).run("recipe")
    winner = {**result.baseline, "stripe_cache_size": 4096, "read_ahead_kb": 2048}
    shares = (
        KnobShare("stripe_cache_size", 256, 4096, Estimate(1.5, 0.01), True),
        KnobShare("read_ahead_kb", 512, 2048, Estimate(1.05, spread), True),
        KnobShare("sync_speed_min", 1000, 5000, Estimate(1.11, 0.2), False),
    )
    result = dataclasses.replace(result, winner=winner, keep=True, shares=shares)
    out = io.StringIO()
    print_result(Console(file=out, width=80, color_system=None), result, None, "0 B of RAM")
    said = out.getvalue()
    assert ("proven only together with the rest: read_ahead_kb" in said) == (spread > 0.1)
    assert "since the gain was proven without: sync_speed_min" in said
