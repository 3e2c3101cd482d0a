"""The tables of a report of an array, from its document."""

from collections.abc import Mapping
from typing import Any

from autotune.quantities import KIB, show_latency, show_percent, show_rate, show_seconds
from autotune.report import check as checks
from autotune.report import sync_forecast
from autotune.report.sync_forecast import show_latency_span, show_time_span
from autotune.report.tables import show_span

Document = Mapping[str, Any]
MOST_PASSES = 60
"""A year of a weekly timer, and some weeks."""
MOST_QUIET = 12
"""Of the table of passes: so many, and all in which more happened than nothing."""
QUIET = ("unchanged", "kept")
MOST_CHECKS = 36
"""Three years of a monthly timer."""
Row = tuple[str, ...]


def moment(stored: str) -> str:
    """`2026-11-23 05:10 UTC`"""
    return f"{stored[:10]} {stored[11:16]} UTC"


def latency(ns: float | None) -> str:
    return show_latency(ns) if ns is not None else ""


def latencies(estimate: Document | None) -> str:
    return show_latency_span(estimate["low"], estimate["high"]) if estimate else "–"


def times(estimate: Document) -> str:
    return show_time_span(estimate["low"], estimate["high"])


SYNC_HEADS = (
    *("began (UTC)", "what", "took", "ceiling", "ceiling held", "highest p99", "how it ended"),
)


def sync_rows(array: Document) -> list[Row]:
    """A row a guarded sync, the newest first."""
    rows: list[Row] = []
    for sync in array["syncs"]:
        summary = sync["summary"]
        judged = ""
        if summary and summary["judged"] and sync["ceiling_ns"]:
            judged = show_percent(sync["held"], summary["judged"])
        rows.append(
            (
                moment(sync["began"]).removesuffix(" UTC"),
                sync["action"],
                show_seconds(sync["seconds"]),
                latency(sync["ceiling_ns"])
                or (f"policy {sync['policy']}" if sync["policy"] else ""),
                judged,
                latency(sync["worst_p99_ns"]),
                summary["ended"] if summary else "the guard was interrupted",
            )
        )
    return rows


CHECK_HEADS = (
    *("began", "state", "time", "sectors differing", "p99, median", "highest p99"),
    *("ceiling", "ceiling held"),
)


def check_rows(array: Document) -> list[Row]:
    """A row a check, the newest first."""
    rows: list[Row] = []
    for each in array["checks"][:MOST_CHECKS]:
        felt, count = each["p99"], each["mismatch_sectors"]
        held = ""
        if felt["ceiling_ns"] and felt["measurements"]:
            held = show_percent(felt["held"], felt["measurements"])
        rows.append(
            (
                each["began"][:10],
                checks.state(each),
                show_seconds(each["seconds"]),
                str(count) if count else "none",
                latency(felt["middle_ns"]),
                latency(felt["worst_ns"]),
                latency(felt["ceiling_ns"]),
                held,
            )
        )
    return rows


FORECAST_HEADS = sync_forecast.HEADS


def forecast_rows(forecast: Document) -> list[Row]:
    """A row for each speed that was measured."""
    return [
        (
            show_rate(row["kib_s"] * KIB),
            *(
                text
                for action in ("check", "rebuild")
                for text in (
                    times(row["seconds"][action]),
                    latencies(row["expected_p99_ns"][action]),
                )
            ),
        )
        for row in forecast["speeds"]
    ]


PASS_HEADS = ("date", "outcome", "throughput", "took", "why")


def pass_rows(array: Document) -> list[Row]:
    """A row a pass of re-tuning, the newest first, without old ones that changed nothing."""
    return [
        (
            each["at"][:10],
            each["outcome"],
            f"×{ratio_and_span(each['gain'])}" if each["gain"] else "–",
            show_seconds(each["seconds"]),
            "; ".join([*each["reasons"], *_found(each)]),
        )
        for age, each in enumerate(reversed(array["passes"][-MOST_PASSES:]))
        if not is_left_out(array, age)
    ]


def is_left_out(array: Document, age: int) -> bool:
    """Whether the table has no row of a pass; the newest has the age 0."""
    return age >= MOST_QUIET and array["passes"][-1 - age]["outcome"] in QUIET


def _found(each: Document) -> list[str]:
    better = each["better"]
    return [f"a new profile is ×{ratio_and_span(better)} of the old one"] if better else []


RUN_HEADS = ("run", "began", "what", "overall (95 %)", "trials", "outcome")


def run_rows(array: Document) -> list[Row]:
    """A row a run, the newest first."""
    return [
        (
            str(each["run"]),
            each["began"][:10],
            f"measured: {each['given']}" if each["given"] else f"tuned for {each['workload']}",
            f"×{show_gain(each['gain'])}" if each["gain"] else "–",
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
