"""The three named answers of a run, for people and for programs."""

from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting, setting_key, show_setting
from autotune.quantities import show_count
from autotune.report.tables import show_span
from autotune.report.text_table import TextTable
from autotune.results.pareto import Named, Point
from autotune.suggested import in_folder

NAMES = ("throughput", "balanced", "latency")


def evidence(point: Point) -> str:
    """How well a point is known, in a word or two."""
    if point.confirmed:
        return "proven"
    if point.in_turn:
        # Another one, with fewer changes perhaps, was kept.
        is_better = point.gain.interval[0] > 1.0
        return "measured in turn" if is_better else "measured in turn, not shown to be better"
    return f"not proven, {show_count(len(point.trials), 'trial')}"


def show_ratio(estimate: Estimate) -> str:
    """`×1.20 (1.12 to 1.29)`: with its 95 % interval; `=` for what nothing can have moved."""
    if not estimate.spread:
        return "="
    return f"×{estimate.value:.2f} ({show_span(*estimate.interval)})"


def print_named(console: Console, named: Named | None, baseline: Setting, run: int) -> None:
    """The answers, if they differ: a choice of one is no choice."""
    if named is None:
        return
    answers = {name: getattr(named, name) for name in NAMES}
    settings = {setting_key(point.setting) for point in answers.values() if point}
    if len(settings) < 2:
        return
    console.print(Text.assemble(("Other answers", "bold"), " from the same trials"))
    grid = TextTable("", "")
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
        grid.add_row(f"  {name}", text)
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
    """Gain and p99 relative to the baseline, with their spreads (log scale) and 95 % intervals."""
    return {
        "setting": dict(point.setting),
        "gain": _estimate(point.gain),
        "p99": _estimate(point.latency),
        "confirmed": point.confirmed,
        "in_turn": point.in_turn,
        "trials": list(point.trials),
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    low, high = estimate.interval
    return {"value": estimate.value, "spread": estimate.spread, "low": low, "high": high}
