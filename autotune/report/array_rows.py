"""The tables of a report of an array, from its document."""

from collections.abc import Mapping
from typing import Any

from autotune.quantities import show_count, show_latency, show_rate, show_seconds
from autotune.report import check as checks
from autotune.report.sync_forecast import show_time_span
from autotune.report.tables import show_span

Document = Mapping[str, Any]
MOST_PASSES = 60
"""A year of a weekly timer, and some weeks."""
MOST_CHECKS = 36
"""Three years of a monthly timer."""
KIB = 1024
Row = tuple[str, ...]


def moment(stored: str) -> str:
    """`2026-11-23 05:10 UTC`"""
    return f"{stored[:10]} {stored[11:16]} UTC"


def latency(ns: float | None) -> str:
    return show_latency(ns) if ns is not None else ""


def latencies(estimate: Document) -> str:
    return f"{show_latency(estimate['low'])} to {show_latency(estimate['high'])}"


def times(estimate: Document) -> str:
    return show_time_span(estimate["low"], estimate["high"])


SYNC_HEADS = ("began", "what", "took", "ceiling", "held", "highest p99", "how it ended")


def sync_rows(array: Document) -> list[Row]:
    """A row a guarded sync, the newest first."""
    rows: list[Row] = []
    for sync in array["syncs"]:
        summary = sync["summary"]
        judged = f"{sync['held']} of {summary['judged']}" if summary else ""
        rows.append(
            (
                moment(sync["began"]),
                sync["action"],
                show_seconds(sync["seconds"]),
                latency(sync["ceiling_ns"]) or sync["policy"] or "",
                judged if sync["ceiling_ns"] else "",
                latency(sync["worst_p99_ns"]),
                summary["ended"] if summary else "the guard was cut",
            )
        )
    return rows


CHECK_HEADS = (
    *("began (UTC)", "state", "parts", "time", "mismatches", "p99, worst", "ceiling", "held"),
)


def check_rows(array: Document) -> list[Row]:
    """A row a check, the newest first."""
    rows: list[Row] = []
    for each in array["checks"][:MOST_CHECKS]:
        felt, count = each["p99"], each["mismatch_sectors"]
        p99s = [latency(felt[name]) for name in ("middle_ns", "worst_ns") if felt[name]]
        ceiling = latency(felt["ceiling_ns"])
        rows.append(
            (
                moment(each["began"]).removesuffix(" UTC"),
                checks.state(each).removeprefix("stands "),
                str(each["pieces"]),
                show_seconds(each["seconds"]),
                show_count(count, "sector") if count else "none",
                ", ".join(p99s),
                ceiling,
                f"{felt['held']} of {felt['measurements']}" if ceiling and p99s else "",
            )
        )
    return rows


FORECAST_HEADS = ("each member", "check (95 %)", "rebuild (95 %)", "p99 in a check")


def forecast_rows(forecast: Document) -> list[Row]:
    """A row for each speed that was measured."""
    return [
        (
            show_rate(row["kib_s"] * KIB),
            times(row["seconds"]["check"]),
            times(row["seconds"]["rebuild"]),
            latencies(row["p99_ns"]) if row["p99_ns"] else "–",
        )
        for row in forecast["speeds"]
    ]


PASS_HEADS = ("date", "outcome", "against originals", "found against profile", "took", "why")


def pass_rows(array: Document) -> list[Row]:
    """A row a pass of re-tuning, the newest first."""
    return [
        (
            each["at"][:10],
            each["outcome"],
            ratio_and_span(each["gain"]),
            ratio_and_span(each["better"]),
            f"{show_seconds(each['seconds'])}, {show_count(each['trials'], 'trial')}",
            "; ".join(each["reasons"]),
        )
        for each in reversed(array["passes"][-MOST_PASSES:])
    ]


RUN_HEADS = ("run", "began", "what", "overall (95 %)", "trials", "outcome")


def run_rows(array: Document) -> list[Row]:
    """A row a run, the newest first."""
    return [
        (
            str(each["run"]),
            moment(each["began"]),
            f"measured: {each['given']}" if each["given"] else f"tuned for {each['workload']}",
            show_gain(each["gain"]) if each["gain"] else "–",
            str(each["trials"]),
            each["outcome"].rstrip(".") or each["state"],
        )
        for each in array["runs"]
    ]


def ratio_and_span(triple: list[float] | None) -> str:
    """`1.20 (1.10 to 1.31)`"""
    if triple is None:
        return "–"
    ratio, low, high = triple
    return f"{ratio:.2f} ({show_span(low, high)})"


def show_gain(gain: Document) -> str:
    """The same of a comparison."""
    return ratio_and_span([gain[part] for part in ("ratio", "low", "high")])
