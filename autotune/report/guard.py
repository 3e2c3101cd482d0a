"""A guard at work: lines of JSON for programs, a calm line on a terminal, a sentence at the end."""

from typing import Any

from autotune.guard.loop import Window
from autotune.guard.session import Summary
from autotune.quantities import show_bytes, show_latency, show_rate, show_seconds


def window_document(window: Window) -> dict[str, Any]:
    """One line of `--json`."""
    return {"kind": "window", **vars(window)}


def summary_document(summary: Summary) -> dict[str, Any]:
    """The line of `--json` at the end of a sync."""
    return {"kind": "summary", **vars(summary)}


def window_line(window: Window, ceiling_ns: float) -> str:
    """What the progress line says before its bar."""
    rate = f"sync {show_rate(window.sync_bytes_per_s)}"
    if window.left_s is not None:
        rate += f", {show_seconds(window.left_s)} left"
    if window.source == "none":
        return f"no requests of users, full speed, {rate}"
    if window.p99_ns is None:
        return f"measuring the requests of users, {rate}"
    return f"p99 {show_latency(window.p99_ns)} of {show_latency(ceiling_ns)}, {rate}"


def summary_line(summary: Summary, ceiling_ns: float) -> str:
    """How a sync under guard went, in a sentence or two."""
    text = (
        f"Guarded a {summary.action} for {show_seconds(summary.seconds)} "
        f"({show_bytes(summary.synced_bytes)} of each member); {summary.ended}, and the settings "
        "are as they were found."
    )
    if not summary.judged:
        return text + " Users sent hardly any requests meanwhile."
    held = summary.judged - summary.over
    return (
        f"{text} The p99 of the last half minute was within {show_latency(ceiling_ns)} at {held} "
        f"of {summary.judged} measurements."
    )
