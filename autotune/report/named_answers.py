"""The three named answers of a run, for people and for programs."""

import math
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting, setting_key
from autotune.quantities import show_count
from autotune.report.grid import Grid
from autotune.report.tables import show_setting
from autotune.results.pareto import Named, Point
from autotune.suggested import in_folder

NAMES = ("throughput", "balanced", "latency")


def evidence(point: Point) -> str:
    """How well a point is known, in a word or two."""
    if point.confirmed:
        return "confirmed"
    return f"not confirmed, {show_count(len(point.trials), 'trial')}"


def show_ratio(estimate: Estimate) -> str:
    """`×1.20 ± 0.03`: one spread, in the value's own unit."""
    return f"×{estimate.value:.2f} ± {estimate.value * math.expm1(estimate.spread):.2f}"


def print_named(console: Console, named: Named | None, baseline: Setting, run: int) -> None:
    """The answers, if they differ: a choice of one is no choice."""
    if named is None:
        return
    answers = {name: getattr(named, name) for name in NAMES}
    settings = {setting_key(point.setting) for point in answers.values() if point}
    if len(settings) < 2:
        return
    console.print("[bold]Other answers[/] from the same trials")
    grid = Grid("", "")
    for name, point in answers.items():
        if point is None:
            text = "nothing met the ceilings"
        elif setting_key(point.setting) == setting_key(baseline):
            text = "the original settings"
        else:
            text = (
                f"{show_ratio(point.gain)}, p99 {show_ratio(point.latency)}, {evidence(point)}\n"
                f"{show_setting(point.setting, baseline)}"
            )
        grid.add_row(f"  {name}", Text(text))
    console.print(grid)
    command = in_folder(f"`autotune solve {run} --name NAME --save FILE`")
    console.print(f"{command} makes a profile of another.")


def document(named: Named | None) -> dict[str, Any] | None:
    """The same for programs; None for a name without an answer, or if there are none at all."""
    if named is None:
        return None
    answers = {name: getattr(named, name) for name in NAMES}
    return {name: point_document(point) if point else None for name, point in answers.items()}


def point_document(point: Point) -> dict[str, Any]:
    """Gain and p99 relative to the baseline, with their spreads (log scale)."""
    return {
        "setting": dict(point.setting),
        "gain": {"value": point.gain.value, "spread": point.gain.spread},
        "p99": {"value": point.latency.value, "spread": point.latency.spread},
        "confirmed": point.confirmed,
        "trials": list(point.trials),
    }
