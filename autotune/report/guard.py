"""A guard at work: lines of JSON for programs, and a sentence at the end."""

import math
from typing import Any

from autotune.guard.session import Summary
from autotune.guard.window import Window
from autotune.quantities import show_bytes, show_latency, show_percent, show_seconds


def window_document(window: Window) -> dict[str, Any]:
    """One line of `--json`."""
    return {"kind": "window", **vars(window)}


def summary_document(summary: Summary) -> dict[str, Any]:
    """The line of `--json` at the end of a sync."""
    return {"kind": "summary", **vars(summary)}


def summary_line(summary: Summary, ceiling_ns: float) -> str:
    """How a sync under guard went, in a sentence or two."""
    text = (
        f"Guarded a {summary.action} for {show_seconds(summary.seconds)} "
        f"({show_bytes(summary.synced_bytes)} of each member); {summary.ended}, and the settings "
        "are as they were found."
    )
    if summary.late_s is not None:
        how = "before" if summary.late_s <= 0 else "after"
        text += f" It ended {show_seconds(abs(summary.late_s))} {how} the deadline."
    if summary.first:
        text += f" Ceiling and deadline could not both be kept; the {summary.first} was."
    if not math.isfinite(ceiling_ns):
        return text
    if not summary.judged:
        text += " Users sent hardly any requests meanwhile."
    else:
        held = summary.judged - summary.over
        text += (
            f" The p99 was within {show_latency(ceiling_ns)} for "
            f"{show_percent(held, summary.judged)} of the measured time (not counting the "
            "first seconds after users came)."
        )
    if summary.few_over:
        text += (
            f" In another {show_percent(summary.few_over, summary.windows)} of the time there were "
            "too few requests to judge, but some took longer than the ceiling."
        )
    return text
