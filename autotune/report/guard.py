"""A guard at work: lines of JSON for programs, a calm line on a terminal, a sentence at the end."""

import math
from typing import Any

from autotune.guard.session import Summary
from autotune.guard.window import Window
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
        rate += f", {show_seconds(window.left_s)} left{_span(window)}"
    if window.needed_kib is not None:
        rate += f", the date needs {show_rate(window.needed_kib * 1024)}"
    if window.source == "none":
        return f"no requests of users, full speed, {rate}"
    if window.p99_ns is None:
        return f"measuring the requests of users, {rate}"
    of = f" of {show_latency(ceiling_ns)}" if math.isfinite(ceiling_ns) else ""
    return f"p99 {show_latency(window.p99_ns)}{of}, {rate}"


def _span(window: Window) -> str:
    if window.left_low_s is None or window.left_high_s is None:
        return ""
    return f" ({show_seconds(window.left_low_s)} to {show_seconds(window.left_high_s)})"


def summary_line(summary: Summary, ceiling_ns: float) -> str:
    """How a sync under guard went, in a sentence or two."""
    text = (
        f"Guarded a {summary.action} for {show_seconds(summary.seconds)} "
        f"({show_bytes(summary.synced_bytes)} of each member); {summary.ended}, and the settings "
        "are as they were found."
    )
    if summary.late_s is not None:
        how = "before" if summary.late_s <= 0 else "after"
        text += f" It was over {show_seconds(abs(summary.late_s))} {how} the date."
    if not math.isfinite(ceiling_ns):
        return text
    if not summary.judged:
        return text + " Users sent hardly any requests meanwhile."
    held = summary.judged - summary.over
    return (
        f"{text} The p99 of the last half minute was within {show_latency(ceiling_ns)} at {held} "
        f"of {summary.judged} measurements."
    )
