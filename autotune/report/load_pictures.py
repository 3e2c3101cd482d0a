"""The pictures of what single phases showed: their latencies, and how they went on."""

from collections.abc import Mapping
from typing import Any

from autotune.quantities import show_count, show_latency, show_rate
from autotune.report.drawing import AFTER, BEFORE, Picture, figure, log_axis, picture

Document = Mapping[str, Any]
SIDES = (("before", BEFORE, "--", "original"), ("after", AFTER, "-", "new"))


def distribution(name: str, run: Document, each: Document) -> Picture:
    """Which share of a probe's requests took longer than so long."""
    drawing, (axes,) = figure(3.2)
    figures = {f["name"]: f for f in run["figures"]}
    prefix, said = "write_" if each["requests"] == "writes" else "", []
    for side, colour, style, label in SIDES:
        if side not in each:
            continue
        slower = each[side]["slower"]
        counted = f"{label}, {show_count(each[side]['requests'], 'request')}"
        axes.plot(
            [ns for ns, _ in slower], [share for _, share in slower], style,
            color=colour, drawstyle="steps-post", label=counted,
        )  # fmt: skip
        for quantity, share in (("p50", 0.5), ("p99", 0.01), ("p999", 0.001)):
            ns = figures.get(f"{each['phase']}.{prefix}{quantity}", {}).get(side)
            if ns:
                axes.plot([ns], [share], "o", color=colour, markersize=6)
                said.append(f"{label} {quantity.replace('999', '99.9')} {show_latency(ns)}")
    lowest = min(s["slower"][-1][1] for s in (each.get("before"), each.get("after")) if s)
    axes.set_yscale("log")
    axes.set_ylim(lowest * 0.7, 1.3)
    log_axis(axes, "x", show_latency)
    shares = [s for s in (0.5, 0.1, 0.01, 0.001) if s > lowest]
    names = {0.5: "50 % (p50)", 0.1: "10 %", 0.01: "1 % (p99)", 0.001: "0.1 % (p99.9)"}
    axes.set_yticks(shares, [names[s] for s in shares])
    axes.minorticks_off()
    axes.set_xlabel("took longer than")
    axes.set_ylabel("of the requests")
    axes.legend(loc="lower left")
    title = f"Latency of the {each['requests']} beside {each['phase']}"
    return picture(name, drawing, title, f"{'; '.join(said) or 'too few requests for a p50'}.")


def course(name: str, run: Document, each: Document) -> Picture:
    """What a phase showed second by second, and how many stripes the cache had then."""
    moves = any(any(each[side]["rate"]) for side in ("before", "after") if side in each)
    grows = any(each[side]["stripes"] for side in ("before", "after") if side in each)
    drawing, panels = figure(2.4 + 1.2 * grows, *((2.0, 1.0) if grows else ()))
    what, show = ("rate", show_rate) if moves else ("slowest_ns", show_latency)
    for side, colour, style, label in SIDES:
        if side not in each:
            continue
        shown: dict[str, Any] = each[side]
        look: dict[str, Any] = {"color": colour, "linestyle": style}
        # From the start of the first interval on.
        time, values = [0.0, *shown["end_s"]], [shown[what][0], *shown[what]]
        panels[0].plot(time, values, drawstyle="steps-pre", label=label, **look)
        if shown["stripes"]:
            panels[1].plot(shown["end_s"], shown["stripes"], **look)
    panels[0].set_ylim(bottom=0)
    panels[0].yaxis.set_major_formatter(lambda value, _: show(value) if value else "0")
    panels[0].set_ylabel("throughput" if moves else "slowest request")
    if grows:
        # Room for the line at the top.
        panels[1].set_ylim(0, 1.1 * panels[1].get_ylim()[1])
        panels[1].set_ylabel("stripes\nin the cache")
    panels[-1].set_xlabel("seconds since the load had settled")
    drawing.legend(loc="outside upper right", ncols=2)
    said = "; ".join(
        f"{label}: {show(min(each[side][what]))} to {show(max(each[side][what]))}"
        + (f", {max(each[side]['stripes'])} stripes at most" if each[side]["stripes"] else "")
        for side, _, _, label in SIDES
        if side in each
    )
    return picture(name, drawing, f"{each['phase']}, second by second", f"{said}.")
