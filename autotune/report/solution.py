"""An answer chosen from stored trials, for people and for programs."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.problem.ceilings import QUANTITIES
from autotune.quantities import show_figure, show_latency, show_ram
from autotune.report.named_answers import evidence, point_document, show_ratio
from autotune.report.tables import show_value_change
from autotune.report.text_table import TextTable
from autotune.results.ended_early import sentence
from autotune.results.solve import Solution


def print_solution(console: Console, solution: Solution, saved: Path | None) -> None:
    """The figures to expect, the values to set, and how sure that is."""
    point, baseline = solution.point, solution.baseline
    table = TextTable("", "original", "expected", "ceiling", right=[1, 2, 3], whole=range(4))
    for figure in solution.figures:
        in_table = figure.weight or figure.quantity in QUANTITIES
        if in_table and figure.name in point.figures and figure.name in baseline.figures:
            table.add_row(
                figure.name,
                show_figure(figure.kind, baseline.figures[figure.name].value),
                show_figure(figure.kind, point.figures[figure.name].value),
                show_latency(limit) if (limit := figure.limit(baseline.figures)) else "",
            )
    console.print(table)
    console.print()
    if uncounted := sentence(solution.uncounted, solution.again):
        console.print(uncounted)
    name = (solution.name, "bold")
    if solution.profile is None:
        shown = "was shown to be better" if solution.decided else "tried is better"
        console.print(Text.assemble(name, f": keep what you have; nothing {shown}."))
        return
    gain, latency = show_ratio(point.gain), show_ratio(point.latency)
    said = f": gain {gain}, p99 {latency} ({evidence(point)})."
    console.print(Text.assemble(name, said))
    for knob, value in solution.profile.knobs.items():
        before = solution.profile.before[knob]
        console.print(show_value_change(console, knob, before, value).rstrip())
    console.print(f"  takes {show_ram(solution.ram_bytes, solution.original_ram_bytes)}")
    if point.in_turn and not point.confirmed and point.gain.interval[0] > 1.0:
        console.print("It was measured in turn with the original settings; another one was kept.")
    elif point.in_turn and not point.confirmed:
        console.print(
            "It was measured in turn with the original settings, but not shown to be better under "
            "the ceilings of the run.",
        )
    elif not point.confirmed:
        console.print(
            "It was not measured in turn with the original settings, and the best of many looks "
            "better than it is; a run with these ceilings would show whether it is.",
        )
    if saved is not None:
        console.print(f"Profile saved: {saved}")


def document(solution: Solution, saved: Path | None) -> dict[str, Any]:
    """The same for programs; rates in bytes/s, latencies in ns, spreads on the log scale."""
    point, before = solution.point, solution.baseline.figures
    return {
        "run": solution.run,
        "name": solution.name,
        **point_document(point),
        "adopt": solution.profile is not None,
        "figures": {
            figure.name: {
                "before": before[figure.name].value,
                "expected": point.figures[figure.name].value,
                "spread": point.figures[figure.name].spread,
                "ceiling": figure.limit(before),
            }
            for figure in solution.figures
            if figure.name in point.figures and figure.name in before
        },
        "ram_bytes": solution.ram_bytes,
        "original_ram_bytes": solution.original_ram_bytes,
        "uncounted": list(solution.uncounted),
        "again": solution.again,
        "profile": solution.profile.model_dump(mode="json") if solution.profile else None,
        "profile_path": str(saved) if saved else None,
    }
