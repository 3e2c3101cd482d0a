"""What a report of an array says in words and in rows of tables, from its document."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from autotune.guard.session import Summary
from autotune.quantities import show_count, show_latency, show_rate, show_seconds
from autotune.report.guard import summary_line
from autotune.report.sync_forecast import show_time_span
from autotune.report.tables import show_span

Document = Mapping[str, Any]
MOST_PASSES = 60
"""In a table: a year of a weekly timer, and some weeks."""
DRAWN_SYNCS = 3
KIB = 1024
HOW = (
    "The p99 of a guarded sync is that of the half minute before each moment, of the users' own "
    "requests or of a probe.",
    "Where a sync took long, a point of its pictures stands for some minutes: the line is their "
    "mean, the shade reaches to the highest.",
    "A forecast is measured by a short check, and its intervals contain the true value 95 times of "
    "100 as long as the same users stay.",
    "A pass of re-tuning measures the profile in turn with the original settings.",
)
SHORT = "In short"


def moment(stored: str) -> str:
    """`2026-11-23 05:10 UTC`"""
    return f"{stored[:10]} {stored[11:16]} UTC"


def short(array: Document) -> list[str]:
    """What is to be known first, newest things alone."""
    said = []
    if array["syncs"]:
        said.append(sync_line(array["syncs"][0]))
    forecast = array["forecast"]
    if forecast is not None:
        full = forecast["curve"][-1]
        felt = full["p99_ns"]["rebuild"]
        with_p99 = f", with a p99 of {_latencies(felt)}" if felt else ""
        said.append(
            f"By the forecast of {moment(forecast['made'])}, a rebuild at full speed takes "
            f"{_times(full['seconds']['rebuild'])}{with_p99}."
        )
    if array["passes"]:
        last = array["passes"][-1]
        gain = f", the profile is ×{_gain(last['gain'])} of the originals" if last["gain"] else ""
        said.append(f"The newest pass ({moment(last['at'])}): {last['outcome']}{gain}.")
    return said


def sync_line(sync: Document) -> str:
    """How a guarded sync went, in a sentence or two."""
    summary = sync["summary"]
    if summary is None:
        return (
            f"A guard of a {sync['action']} was cut after {show_seconds(sync['seconds'])}; what it "
            "saw until then is shown."
        )
    told = Summary(**{field.name: summary[field.name] for field in fields(Summary)})
    return summary_line(told, sync["ceiling_ns"] or float("inf"))


SYNC_HEADS = ("began", "what", "took", "ceiling", "held", "highest p99", "how it ended")


def sync_rows(array: Document) -> list[tuple[str, ...]]:
    """A row a guarded sync, the newest first."""
    rows: list[tuple[str, ...]] = []
    for sync in array["syncs"]:
        summary = sync["summary"]
        judged = f"{sync['held']} of {summary['judged']}" if summary else ""
        rows.append(
            (
                moment(sync["began"]),
                sync["action"],
                show_seconds(sync["seconds"]),
                _latency(sync["ceiling_ns"]) or sync["policy"] or "",
                judged if sync["ceiling_ns"] else "",
                _latency(sync["worst_p99_ns"]),
                summary["ended"] if summary else "the guard was cut",
            )
        )
    return rows


def _latency(ns: float | None) -> str:
    return show_latency(ns) if ns is not None else ""


FORECAST_HEADS = ("each member", "check (95 %)", "rebuild (95 %)", "p99 (95 %)")


def forecast_rows(forecast: Document) -> list[tuple[str, ...]]:
    """A row for each speed that was measured."""
    return [
        (
            show_rate(row["kib_s"] * KIB),
            _times(row["seconds"]["check"]),
            _times(row["seconds"]["rebuild"]),
            _latencies(row["p99_ns"]) if row["p99_ns"] else "–",
        )
        for row in forecast["speeds"]
    ]


def _times(estimate: Document) -> str:
    return show_time_span(estimate["low"], estimate["high"])


def _latencies(estimate: Document) -> str:
    return f"{show_latency(estimate['low'])} to {show_latency(estimate['high'])}"


PASS_HEADS = ("date", "outcome", "against originals", "found against profile", "took", "why")


def pass_rows(array: Document) -> list[tuple[str, ...]]:
    """A row a pass of re-tuning, in order."""
    return [
        (
            each["at"][:10],
            each["outcome"],
            _gain(each["gain"]),
            _gain(each["better"]),
            show_seconds(each["seconds"]),
            "; ".join(each["reasons"]),
        )
        for each in array["passes"][-MOST_PASSES:]
    ]


def _gain(triple: list[float] | None) -> str:
    if triple is None:
        return "–"
    ratio, low, high = triple
    return f"{ratio:.2f} ({show_span(low, high)})"


def not_shown(array: Document) -> list[str]:
    """What is left out of the page, and why."""
    said = list(array["missing"])
    if (older := len(array["passes"]) - MOST_PASSES) > 0:
        said.append(f"{show_count(older, 'older pass', 'older passes')}: --json has them all.")
    if (more := len(array["syncs"]) - DRAWN_SYNCS) > 0:
        said.append(f"Pictures of {show_count(more, 'earlier sync')}: --json has their points.")
    return said
