"""The tables of a run's figures: what was proven, or the best that was tried."""

import math

from rich.console import Console
from rich.text import Text

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Value
from autotune.quantities import show_figure, show_latency
from autotune.report.text_table import TextTable
from autotune.stats.sequential import Held
from autotune.stats.verdict import Comparison, Conclusion
from autotune.tuning.remarks import Nearest
from autotune.tuning.tune import Result

UNCLEAR = "unclear"
ALIKE = 1.1
"""Up to this ratio, either way, a figure that did not surely change is called the same."""
QUIET_QUANTITIES = ("p50", "p999")
"""Measured and stored, but only p99 has ceilings, so only that is in the short table."""


def is_quiet(name: str, conclusion: str | None) -> bool:
    """Whether the short table goes without a figure. Not if it surely became worse."""
    return name.endswith(QUIET_QUANTITIES) and conclusion != Conclusion.WORSE


ROOMY = 60
"""Columns from which on changes stand below each other."""
_HELD = {
    Held.HOLDS: Text("holds"),
    Held.BROKEN: Text("broken", style="red"),
    Held.NOT_SHOWN: Text("not shown"),
}


def show_change(comparison: Comparison) -> str:
    return f"×{comparison.ratio:.2f} ({show_span(comparison.low, comparison.high, '–')})"


def show_span(low: float, high: float, between: str = " to ") -> str:
    """An interval of a ratio; what is far off has no digits, which would say nothing."""
    return f"{_bound(low)}{between}{_bound(high)}"


def _bound(ratio: float) -> str:
    if ratio < 0.01:
        return "<0.01"
    if ratio > 100:
        return ">100"
    # Whether an interval holds 1 decides whether it counts.
    return f"{ratio:.2f}" if ratio == 1 or f"{ratio:.2f}" != "1.00" else f"{ratio:.3f}"


def show_alike(low: float, high: float) -> str:
    """Of a figure that is neither better nor worse: a wide interval does not say that nothing
    changed."""
    return "same" if low > 1 / ALIKE and high < ALIKE else UNCLEAR


def show_value_change(console: Console, knob: str, before: Value, after: Value) -> str:
    """One setting's change, in columns where there is room."""
    if console.width < ROOMY:
        return f"  {knob} {before} → {after}"
    return f"  {knob:<20} {before!s:>12} → {after!s:<12}"


def _table(after: str) -> TextTable:
    names = ("", "before", after, "change (95 %)", "ceiling", "")
    return TextTable(*names, right=[1, 2, 4], whole=range(6))


def _rows(result: Result) -> list[Figure]:
    compared = result.verdict.figures if result.verdict else {}
    concluded = {name: each.conclusion.value for name, each in compared.items()}
    return [
        figure
        for figure in result.figures
        if figure.name in result.before and not is_quiet(figure.name, concluded.get(figure.name))
    ]


def _ceiling(figure: Figure, result: Result) -> str:
    limit = figure.limit(result.before)
    return show_latency(limit) if limit is not None else ""


def proof_table(result: Result) -> TextTable:
    """Before and after, a row a figure; "=" where the winner's knobs can move nothing. Nothing but
    the original figures if nothing was measured beside them."""
    if result.verdict is None:
        return _original_table(result)
    table = _table("after")
    compared = result.verdict.figures
    for figure in _rows(result):
        before = show_figure(figure.kind, result.before[figure.name].value)
        limit, comparison = _ceiling(figure, result), compared.get(figure.name)
        held = result.held.get(figure.name)
        state = _HELD.get(held) if held else None
        if comparison is None:
            table.add_row(figure.name, before, "=", "", limit, state or "", style="dim")
            continue
        after = show_figure(figure.kind, result.after[figure.name].value)
        conclusion = comparison.conclusion.value
        colour = {"better": "green", "worse": "red"}.get(conclusion, "")
        alike = show_alike(comparison.low, comparison.high)
        word = Text(conclusion, style=colour) if colour else Text(alike)
        table.add_row(figure.name, before, after, show_change(comparison), limit, state or word)
    return table


def _original_table(result: Result) -> TextTable:
    table = TextTable("", "as it is", "ceiling", right=[1, 2], whole=range(3))
    for figure in _rows(result):
        shown = show_figure(figure.kind, result.before[figure.name].value)
        table.add_row(figure.name, shown, _ceiling(figure, result))
    return table


def nearest_table(result: Result, nearest: Nearest) -> TextTable:
    """The original settings beside the best that was tried, which nothing was proven of."""
    table = _table("best tried")
    baseline = nearest.baseline.figures
    for figure in _rows(result):
        before, shown = baseline.get(figure.name), nearest.point.figures.get(figure.name)
        if before is None:
            continue
        limit = figure.limit(baseline)
        cells = [figure.name, show_figure(figure.kind, before.value)]
        allowed = show_latency(limit) if limit is not None else ""
        if shown is None or shown == before:
            table.add_row(*cells, "=" if shown else "", "", allowed, style="dim")
            continue
        ratio = Estimate(shown.value / before.value, math.hypot(shown.spread, before.spread))
        change = f"×{ratio.value:.2f} ({show_span(*ratio.interval, '–')})"
        over = "over" if limit is not None and shown.value > limit else ""
        table.add_row(*cells, show_figure(figure.kind, shown.value), change, allowed, over)
    return table
