"""The tables of a run's report, in rows: its figures, its changes, and what it was measured on."""

from collections.abc import Mapping
from typing import Any

from autotune.quantities import show_figure, show_latency
from autotune.report.tables import show_alike, show_span

Document = Mapping[str, Any]


def show(figure: Document, value: float) -> str:
    """A value of a figure, with its unit."""
    return show_figure(figure["kind"], value)


def change(change: Document) -> str:
    """`×1.20 (1.10 to 1.31)`"""
    return f"×{change['ratio']:.2f} ({show_span(change['low'], change['high'])})"


def is_compared(run: Document) -> bool:
    """Whether anything was measured with other settings, too."""
    return any(figure["change"] for figure in run["figures"])


def figure_heads(run: Document) -> tuple[str, ...]:
    """Over the columns of `figure_rows`."""
    if not is_compared(run):
        return ("", "original", "ceiling")
    return ("", "original", "new", "change (95 %)", "ceiling", "")


def figure_rows(run: Document) -> list[tuple[str, ...]]:
    """A row a figure; "=" where the changed settings can move nothing."""
    rows: list[tuple[str, ...]] = []
    for figure in run["figures"]:
        if figure["quiet"]:
            continue
        shown, ceiling = figure["change"], figure["ceiling"]
        if not is_compared(run):
            limit = show_latency(ceiling) if ceiling else ""
            rows.append((figure["name"], show(figure, figure["before"]), limit))
            continue
        word = figure["held"] or (_seen(run, shown["conclusion"]) if shown else "")
        rows.append(
            (
                figure["name"],
                show(figure, figure["before"]),
                show(figure, figure["after"]) if shown else "=",
                change(shown) if shown else "",
                show_latency(ceiling) if ceiling else "",
                show_alike(shown["low"], shown["high"]) if word == "no difference" else word,
            )
        )
    if is_compared(run) and (gain := run["gain"]):
        better, worse = gain["low"] > 1.0, gain["high"] < 1.0
        alike = show_alike(gain["low"], gain["high"])
        word = _seen(run, "better" if better else "worse") if better or worse else alike
        rows.append(("overall", "", "", change(gain), "", word))
    return rows


def _seen(run: Document, conclusion: str) -> str:
    """What is concluded of a figure. What the search of an unfinished run showed is no proof."""
    if run["proven"] is False and conclusion in ("better", "worse"):
        return f"looks {conclusion}"
    return conclusion


CHANGE_HEADS = ("setting", "original", "new", "unit", "its part of the gain")


def change_rows(run: Document) -> list[tuple[str, ...]]:
    """A row for each setting that the answer changes. One that is alone brings all of the gain,
    which was measured: what the models make of it would be another figure."""
    alone = len(run["changes"]) == 1
    return [
        (
            each["knob"],
            str(each["before"]),
            str(each["after"]),
            each["unit"],
            "all of it" if alone else change(each["part"]) if each["part"] else "",
        )
        for each in run["changes"]
    ]


def machine(run: Document) -> list[tuple[str, str]]:
    """What it was measured on and with, as pairs."""
    array, workload = run["array"], run["workload"]
    pairs = [
        ("host", "the lab" if run["lab"] else run["host"]),
        ("array", f"{array['level']} of {array['members']} on {array['media']}"),
        ("chunk", f"{array['chunk_kib']} KiB" if array["chunk_kib"] else ""),
        ("workload", workload["name"]),
        ("phases", ", ".join(phase["name"] for phase in workload.get("phases", []))),
        ("ceilings asked for", ", ".join(run["ceilings"]) or "none"),
        ("strategy", "" if run["given"] else run["strategy"]),
        ("run", f"{run['run']}, {run['state']}"),
        ("started", show_time(run["started"])),
        ("ended", show_time(run["ended"] or "")),
        ("command", run["command"] or ""),
    ]
    known = run["environment"] or {"kernel": array["kernel"]}
    return [(name, text) for name, text in (*pairs, *known.items()) if text]


def show_time(stored: str) -> str:
    """A time as it is stored, for people."""
    return stored.replace("T", " ").replace("+00:00", " UTC")
