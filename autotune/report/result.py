"""What a run found, as a table for people and as a document for programs."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.problem.figure import Figure
from autotune.problem.setting import Setting
from autotune.quantities import show_bytes, show_latency, show_rate, show_seconds
from autotune.stats.verdict import Comparison
from autotune.tuning.time_spent import MEASURING, Spent
from autotune.tuning.tune import Result

QUIET_QUANTITIES = ("p50", "p999")
"""Measured and stored, but only p99 has ceilings, so only that is in the short table."""


def _shown(figure: Figure, value: float) -> str:
    return show_rate(value) if figure.kind == "throughput" else show_latency(value)


def _change(comparison: Comparison) -> str:
    low, high = comparison.low, comparison.high
    return f"×{comparison.ratio:.2f} ({low:.2f} to {high:.2f})"


def show_setting(setting: Setting, baseline: Setting) -> str:
    """The knobs that differ from the baseline, in one line."""
    changed = [f"{k} {v}" for k, v in setting.items() if v != baseline.get(k)]
    return ", ".join(changed) or "the original settings"


def _table(result: Result) -> Table:
    """Before and after, a row a figure; "=" where the winner's knobs can move nothing."""
    table = Table(box=None, pad_edge=False, title_justify="left")
    for name, justify in (("", "left"), ("before", "right"), ("after", "right")):
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    table.add_column("change (95 %)", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    compared = result.verdict.figures if result.verdict else {}
    for figure in result.figures:
        if figure.name.endswith(QUIET_QUANTITIES) or figure.name not in result.before:
            continue
        before = _shown(figure, result.before[figure.name].value)
        comparison = compared.get(figure.name)
        if comparison is None:
            table.add_row(figure.name, before, "=" if compared else "", "", "", style="dim")
            continue
        after = _shown(figure, result.after[figure.name].value)
        colour = {"better": "green", "worse": "red"}.get(comparison.conclusion.value, "")
        word = f"[{colour}]{comparison.conclusion.value}[/]" if colour else "no difference"
        table.add_row(figure.name, before, after, _change(comparison), word)
    return table


def _print_growth(console: Console, result: Result) -> None:
    """What the winner's stripe cache is worth only until the kernel's own growth gets there."""
    before, after = (s.get("stripe_cache_size") for s in (result.baseline, result.winner))
    if before == after or result.grown_stripes <= int(before or 0) * 1.1:
        return
    console.print(
        f"Within a phase the kernel itself made {result.grown_stripes} stripes of the original "
        f"{before}: under a long load with memory to spare the gain on writes is smaller."
    )


def _print_changes(console: Console, result: Result) -> None:
    """Each changed knob with what it brought, and those that went back, having brought nothing."""
    brought = {share.knob: share.gain for share in result.shares if share.needed}
    for knob, value in result.winner.items():
        if value != result.baseline[knob]:
            change = f"  {knob:<20} {result.baseline[knob]!s:>12} → {value!s:<12}"
            share = brought.get(knob)
            if share:
                low, high = share.interval
                change += f" ×{share.value:.2f} ({low:.2f} to {high:.2f})"
            console.print(change.rstrip())
    if brought:
        console.print(f"  (each change's part as the models see it, from {result.trials} trials)")
    idle = [share.knob for share in result.shares if not share.needed]
    if idle:
        console.print(f"  tried, but left as they were at no loss: {', '.join(idle)}")


def print_result(console: Console, result: Result, profile: Path | None, ram_bytes: int) -> None:
    """The table of before and after, what changed, and what to do next."""
    if result.before:
        console.print(_table(result))
        console.print()
    if result.keep and result.verdict:
        overall = result.verdict.overall
        console.print(
            f"[bold]Overall ×{overall.ratio:.2f}[/] ({overall.low:.2f} to {overall.high:.2f}): "
            f"{result.reason}."
        )
        _print_changes(console, result)
        console.print(f"  takes {show_bytes(ram_bytes)} of RAM")
    else:
        console.print(f"[bold]Keep what you have[/]: {result.reason}.")
    allowed = f" of {show_bytes(result.write_budget)}" if result.write_budget else ""
    tried = "1 setting" if result.searched == 1 else f"{result.searched} settings"
    console.print(
        f"{tried} tried; with the original settings and the proof, {result.trials} trials in "
        f"{show_seconds(result.seconds)}, {show_bytes(result.bytes_written)}{allowed} written; "
        f"about {show_seconds(result.saved_s)} saved by not measuring what could not matter."
    )
    if result.winner != result.baseline:
        _print_growth(console, result)
    for name, ratio in result.drifts.items():
        console.print(f"The array itself drifted: {name} to ×{ratio:.2f}; taken out.")
    if result.unsupported:
        names = ", ".join(n for n in result.unsupported if not n.endswith("p999"))
        if names:
            console.print(f"Too few samples for {names}.")
    if profile is not None:
        console.print(f"Profile saved: {profile}", soft_wrap=True)


def as_json(result: Result, profile: dict[str, Any] | None, path: Path | None) -> dict[str, Any]:
    """The same for programs; rates in bytes/s, latencies in ns."""
    verdict = result.verdict
    return {
        "adopt": result.keep,
        "reason": result.reason,
        "winner": dict(result.winner),
        "baseline": dict(result.baseline),
        "gain": comparison_document(verdict.overall) if verdict else None,
        "figures": {
            figure.name: {
                "before": result.before[figure.name].value,
                "after": result.after[figure.name].value if figure.name in result.after else None,
                "ceiling": figure.limit(result.before),
                "change": comparison_document(verdict.figures[figure.name])
                if verdict and figure.name in verdict.figures
                else None,
            }
            for figure in result.figures
            if figure.name in result.before
        },
        "shares": [
            {
                "knob": share.knob,
                "before": share.before,
                "after": share.after,
                "ratio": share.gain.value,
                "low": share.gain.interval[0],
                "high": share.gain.interval[1],
                "needed": share.needed,
            }
            for share in result.shares
        ],
        "trials": result.trials,
        "searched": result.searched,
        "seconds": result.seconds,
        "bytes_written": result.bytes_written,
        "write_budget_bytes": result.write_budget,
        "saved_seconds": result.saved_s,
        "unsupported": result.unsupported,
        "drifts": result.drifts,
        "grown_stripes": result.grown_stripes,
        "profile": profile,
        "profile_path": str(path) if path else None,
    }


NOTED_SHARE = 0.02
"""Of the time, what less than this went to is not told to people."""


def print_spent(console: Console, spent: Spent) -> None:
    """How much of the time was measuring, and what the rest went to."""
    least = NOTED_SHARE * spent.total
    rest = [f"{kind} {show_seconds(s)}" for kind, s in spent.overhead.items() if s > least]
    share = spent.seconds[MEASURING] / spent.total
    console.print(
        f"Measuring took {share:.0%} of the time; the rest: {', '.join(rest)}.", highlight=False
    )


def spent_document(spent: Spent) -> dict[str, Any]:
    """In seconds: what was measuring, and everything else by kind."""
    return {
        "measured_seconds": spent.seconds[MEASURING],
        "overhead_seconds": dict(spent.overhead),
        "measured_share": spent.seconds[MEASURING] / spent.total,
    }


def comparison_document(comparison: Comparison) -> dict[str, Any]:
    return {
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "conclusion": comparison.conclusion.value,
    }
