"""What pictures show is what their report says: every line and dot, from the drawing itself."""

import math
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from some_array import DEVICE, store_array
from stored_reports import documents, drifting, from_the_lab

from autotune.quantities import show_latency
from autotune.report import (
    check_picture,
    guarded_picture,
    interval_picture,
    load_pictures,
    pictures,
    trade_picture,
)
from autotune.report.drawing import AFTER, BEFORE, INK, Picture, styled
from autotune.report.tried_table import limited

MODULES: tuple[ModuleType, ...] = (
    check_picture,
    guarded_picture,
    interval_picture,
    load_pictures,
    pictures,
    trade_picture,
)
SIDES = {"before": (BEFORE, "original"), "after": (AFTER, "new")}
SHARES = {"p50": 0.5, "p99": 0.01, "p999": 0.001}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, Figure]:
    """What is drawn from here on, by name."""
    found: dict[str, Figure] = {}

    def keep(name: str, drawing: Figure, title: str, description: str) -> Picture:
        found[name] = drawing
        return Picture(title, description, "")

    for module in MODULES:
        monkeypatch.setattr(module, "picture", keep)
    return found


@pytest.fixture
def run(tmp_path: Path, drawn: dict[str, Figure]) -> dict[str, Any]:
    """A run of the lab, whose pictures are drawn."""
    (shown,) = documents(from_the_lab(tmp_path), "1")
    pictures.pictures(shown)
    return shown


def line(axes: Axes, label: str) -> Line2D:
    (found,) = (each for each in axes.lines if str(each.get_label()).startswith(label))
    return found


def spots(axes: Axes, marker: str = "o", size: float = 6.0) -> Iterator[tuple[str, float, float]]:
    """Single dots: colour and place."""
    for each in axes.lines:
        alone = len(each.get_xdata()) == 1
        if alone and each.get_marker() == marker and each.get_markersize() == size:
            yield str(each.get_color()), each.get_xdata()[0], each.get_ydata()[0]


def known(values: Any) -> list[float]:
    """Without gaps."""
    return [value for value in values if value is not None and not math.isnan(value)]


def test_latencies(run: dict[str, Any], drawn: dict[str, Figure]) -> None:
    figures = {each["name"]: each for each in run["figures"]}
    assert run["distributions"]
    for number, each in enumerate(run["distributions"]):
        (axes,) = drawn[f"r1-distributions-{number}"].axes
        prefix, expected = "write_" if each["requests"] == "writes" else "", set()
        for side, (colour, label) in SIDES.items():
            curve = line(axes, label)
            assert [*zip(curve.get_xdata(), curve.get_ydata(), strict=True)] == [
                tuple(point) for point in each[side]["slower"]
            ]
            assert curve.get_color() == colour
            assert curve.get_label() == f"{label}, {each[side]['requests']} requests"
            for quantity, share in SHARES.items():
                ns = figures.get(f"{each['phase']}.{prefix}{quantity}", {}).get(side)
                expected |= {(colour, ns, share)} if ns else set()
        assert set(spots(axes)) == expected


def test_seconds(run: dict[str, Any], drawn: dict[str, Figure]) -> None:
    assert run["courses"]
    for number, each in enumerate(run["courses"]):
        panels = drawn[f"r1-courses-{number}"].axes
        moves = any(any(each[side]["rate"]) for side in SIDES)
        for side, (colour, label) in SIDES.items():
            curve, shown = line(panels[0], label), each[side]
            assert curve.get_color() == colour
            assert list(curve.get_xdata())[1:] == shown["end_s"]
            assert list(curve.get_ydata())[1:] == shown["rate" if moves else "slowest_ns"]
            if shown["stripes"]:
                (cache,) = (each for each in panels[1].lines if each.get_color() == colour)
                assert list(cache.get_ydata()) == shown["stripes"]


def rows(drawing: Figure) -> dict[str, tuple[float, float, float]]:
    """Value and ends of the interval, by the row's label."""
    (axes,) = drawing.axes
    labels = dict(
        zip(axes.get_yticks(), [text.get_text() for text in axes.get_yticklabels()], strict=True)
    )
    ends = {
        each.get_ydata()[0]: tuple(each.get_xdata())
        for each in axes.lines
        if len(each.get_xdata()) == 2 and each.get_linewidth() == 2
    }
    return {labels[y]: (x, *ends[y]) for _, x, y in spots(axes)}


def test_changes_and_parts(run: dict[str, Any], drawn: dict[str, Figure]) -> None:
    expected = {
        each["name"] + (" (less is better)" if each["kind"] != "throughput" else ""): each["change"]
        for each in run["figures"]
        if each["change"] and not each["quiet"]
    }
    expected["overall"] = run["gain"]
    for name, wanted in (
        ("change", expected),
        ("effects", {share["knob"]: share for share in run["effects"]}),
    ):
        found = {label.split("\n")[0]: row for label, row in rows(drawn[f"r1-{name}"]).items()}
        assert found.keys() == wanted.keys()
        for label, (value, low, high) in found.items():
            said = wanted[label]
            assert value == pytest.approx(said["ratio"])
            # What is far is cut off at the edge.
            assert low == pytest.approx(max(said["low"], low))
            assert high == pytest.approx(min(said["high"], high))
            left, right = drawn[f"r1-{name}"].axes[0].get_xlim()
            assert low == pytest.approx(said["low"]) or low < 1.1 * left
            assert high == pytest.approx(said["high"]) or high > right / 1.1


def test_trials_and_settings(run: dict[str, Any], drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["r1-trials"].axes
    found = {(x, y) for mark in "oD" for _, x, y in spots(axes, mark)}
    assert found == {(t["number"], t["gain"]["value"]) for t in run["trials"] if t["gain"]}
    (best,) = (each for each in axes.lines if each.get_drawstyle() == "steps-post")
    assert [*zip(best.get_xdata(), best.get_ydata(), strict=True)] == [
        (t["number"], t["best"]) for t in run["trials"] if t["best"]
    ]


@pytest.mark.parametrize("ceilings", ["one", "several"])
def test_throughput_against_each_p99(
    tmp_path: Path, drawn: dict[str, Figure], ceilings: str
) -> None:
    if ceilings == "one":
        (run,) = documents(from_the_lab(tmp_path), "1")
    else:
        run = drifting(tmp_path, resync=70, write=50)
    with styled():
        trade_picture.trade("trade", run)
    panels, figures = drawn["trade"].axes, limited(run)
    assert (len(panels) == 1) == (ceilings == "one")
    assert len(panels) == len(figures)
    for axes, figure in zip(panels, figures, strict=True):
        dots = [(p["p99s"][figure["name"]], p["gain"]["value"]) for p in run["points"]]
        assert {(x, y) for mark in "oD" for _, x, y in spots(axes, mark, 7.0)} == set(dots)
        assert axes.get_xlabel().startswith(figure["name"])
        (ceiling,) = (each for each in axes.lines if each.get_linestyle() == "--")
        assert set(ceiling.get_xdata()) == {figure["ceiling"]}
        named = {
            " = ".join([*(["original"] if point["original"] else []), *point["answers"]]): dot
            for point, dot in zip(run["points"], dots, strict=True)
        }
        named.pop("", None)
        said = {each.get_text(): each.xy for each in axes.texts if isinstance(each, Annotation)}
        name = f"ceiling {show_latency(figure['ceiling'])}"
        # Each name leads to its own dot.
        assert said == {**named, name: (figure["ceiling"], said[name][1])}
        (front,) = (each for each in axes.lines if len(each.get_xdata()) > 1 and each != ceiling)
        corners = [*zip(front.get_xdata(), front.get_ydata(), strict=True)]
        # No dot is above the line, and each of its steps ends at a dot.
        assert set(corners[::2]) <= set(dots)
        for x, y in dots:
            assert y <= max(high for at, high in corners if at <= x)


def test_the_drift_of_the_array(run: dict[str, Any], drawn: dict[str, Figure]) -> None:
    (axes,) = drawn["r1-drift"].axes
    assert run["drift"]
    for each in run["drift"]:
        curve = line(axes, each["figure"])
        assert list(curve.get_xdata()) == [point["minute"] for point in each["points"]]
        assert list(curve.get_ydata()) == [point["value"] for point in each["points"]]


def test_checks_without_users_have_no_axis_for_them(
    tmp_path: Path, drawn: dict[str, Figure]
) -> None:
    store_array(tmp_path)
    (array,) = documents(tmp_path, DEVICE)
    nobody = {"middle_ns": None, "worst_ns": None, "ceiling_ns": None}
    with styled():
        felt = check_picture.checks("felt", array["checks"])
        alone = check_picture.checks("alone", [{**c, "p99": nobody} for c in array["checks"]])
    assert [len(drawn[name].axes) for name in ("felt", "alone")] == [2, 1]
    assert [("p99" in each.title) for each in (felt, alone)] == [True, False]
    assert set(spots(drawn["felt"].axes[1], size=5.0)) == {
        (INK, x, c["p99"]["middle_ns"])
        for x, c in zip(
            check_picture.days([c["began"] for c in array["checks"]]), array["checks"], strict=True
        )
        if c["p99"]["middle_ns"]
    }


def test_a_guarded_sync(tmp_path: Path, drawn: dict[str, Figure]) -> None:
    store_array(tmp_path)
    (array,) = documents(tmp_path, DEVICE)
    assert array["syncs"]
    for number, sync in enumerate(array["syncs"]):
        with styled():
            guarded_picture.guarded_sync(str(number), sync)
        panels, points = drawn[str(number)].axes, sync["points"]
        by, _ = guarded_picture.scaled(sync["seconds"])
        for axes, label, key in (
            (panels[0], "p99", "p99_ns"),
            (panels[1], "sync", "sync_bytes_per_s"),
            (panels[1], "limit", "held_bytes_per_s"),
        ):
            if known(points[key]):
                assert known(line(axes, label).get_ydata()) == known(points[key])
        if sync["ceiling_ns"]:
            assert set(line(panels[0], "ceiling").get_ydata()) == {sync["ceiling_ns"]}
        if known(points["left_s"]):
            expected = [
                (passed + left) / by
                for passed, left in zip(points["seconds"], points["left_s"], strict=True)
                if left is not None
            ]
            assert known(line(panels[2], "expected end").get_ydata()) == expected
