"""A report in a real browser: nothing overflows, no labels overlap, all can be read."""

import dataclasses
import math
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import some_design
from browser import PROGRAM, Browser
from fake_run import Machine
from some_array import DEVICE, store_array, store_little
from stored_reports import NASTY, documents, drifting, from_the_lab, nasty

from autotune.design.stored import keep
from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.figure import Estimate
from autotune.report.design_document import document
from autotune.report.page import html

pytestmark = [
    pytest.mark.filterwarnings("error"),
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="chromium is not installed"),
]

RECORDED = Path(__file__).parents[1] / "recorded/2026-11/state"
OVERFLOWS = """
[...document.querySelectorAll('body *')].filter(e => !e.closest('svg')).filter(e =>
  e.scrollWidth > e.clientWidth + 1 && e.clientWidth &&
  !(e.closest('thead') && getComputedStyle(e.closest('thead')).position == 'absolute')
).map(e => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 80))
"""
OVERLAPS = """
[...document.querySelectorAll('svg')].flatMap(svg => {
  const whole = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map(e =>
    [e.textContent, e.getBoundingClientRect()]);
  const outside = texts.filter(([, r]) => r.left < whole.left - 1 || r.right > whole.right + 1 ||
    r.top < whole.top - 1 || r.bottom > whole.bottom + 1).map(([t]) => t + ' is outside');
  const over = texts.flatMap(([t, a], i) => texts.slice(i + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5).map(([u]) => t + ' over ' + u));
  return [...outside, ...over].map(each => svg.querySelector('title').textContent + ': ' + each);
})
"""
REPEATS = """
[...document.querySelectorAll('svg g g')].flatMap(axis => {
  const labels = [...axis.querySelectorAll(':scope > g > g > text')].map(e => e.textContent);
  return labels.filter((each, i) => labels.indexOf(each) != i)
    .map(each => axis.closest('svg').querySelector('title').textContent + ': twice ' + each);
})
"""
PARTED = """
[...document.querySelectorAll('.word')].filter(e => e.textContent.length < 25 &&
  e.offsetHeight > 1.9 * parseFloat(getComputedStyle(e).fontSize)).map(e => e.textContent)
"""
FAINT = """
(() => {
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v =>
    v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const below = e => { for (; e; e = e.parentElement) {
    const c = numbers(getComputedStyle(e).backgroundColor); if (c.length == 3) return c; } };
  return [...document.querySelectorAll('body *')].filter(e =>
    [...e.childNodes].some(n => n.nodeType == 3 && n.data.trim()) &&
    !['title', 'desc', 'style'].includes(e.tagName)).map(e => {
      const style = getComputedStyle(e);
      const [a, b] = [light(numbers(e.closest('svg') ? style.fill : style.color)), light(below(e))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + e.textContent];
    }).filter(([ratio]) => ratio < 4.5).map(each => each.join(' '));
})()
"""


class Alike(Machine):
    """Nothing that is set changes anything."""

    def apply(self, *args: Any) -> Any:
        wanted = super().apply(*args)
        self.setting = {**self.setting, "stripe_cache_size": 256}
        return wanted


class Wild(Machine):
    """Its figures go up and down by an order of magnitude."""

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        rng = random.Random(seed)
        figures = {
            name: Estimate(e.value * math.exp(rng.gauss(0, 1.5)), 0.5)
            for name, e in result.figures.items()
        }
        return dataclasses.replace(result, figures=figures)


def beside_the_ceiling(run: dict[str, Any]) -> dict[str, Any]:
    """A run with the dot of the original settings where the ceiling's name is."""
    (limited,) = (each for each in run["figures"] if each["ceiling"])
    shown = zip(
        run["points"], (0.773, 1.733, 0.877, 0.877), (1.0, 1.29, 1.063, 1.015), strict=False
    )
    points = [
        {
            **point,
            "p99s": {limited["name"]: share * limited["ceiling"]},
            "gain": {"value": gain, "low": 0.9 * gain, "high": 1.1 * gain},
            "answers": ["latency"] if point["original"] else [],
        }
        for point, share, gain in shown
    ]
    limited["before"] = 0.773 * limited["ceiling"]
    return {**run, "points": points}


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> "Browser":  # type: ignore[misc]
    with Browser(tmp_path_factory.mktemp("chromium")) as found:
        yield found


@pytest.mark.parametrize("width", [1280, 1000, 390])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize(
    "runs",
    [
        *("lab", "kept", "several", "many", "none kept", "wild", "nasty", "array"),
        *("little of an array", "design", "recorded", "at a ceiling", "several ceilings"),
    ],
)
def test_everything_can_be_read(
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    dark: bool,
    runs: str,
) -> None:
    if runs == "nasty":
        nasty(tmp_path)
        shown = documents(tmp_path, "1")
    elif runs == "array":
        store_array(tmp_path)
        shown = documents(tmp_path, DEVICE)
    elif runs == "little of an array":
        store_little(tmp_path)
        shown = documents(tmp_path, DEVICE)
    elif runs == "design":
        keep(document(some_design.result(), made=False), tmp_path)
        shown = documents(tmp_path, "design-1")
    elif runs == "lab":
        shown = documents(from_the_lab(tmp_path), "1")
    elif runs == "recorded":
        # Its p99s are all alike.
        shutil.copytree(RECORDED, tmp_path / "state")
        shown = documents(tmp_path / "state", "2")
    elif runs == "at a ceiling":
        (whole,) = documents(from_the_lab(tmp_path), "1")
        shown = [beside_the_ceiling(whole)]
    elif runs == "several ceilings":
        shown = [drifting(tmp_path, idle=30, write=50, resync=70)]
    else:
        machine = {"none kept": Alike, "wild": Wild}.get(runs, Machine)(tmp_path, monkeypatch)
        machine.run("recipe")
        if runs == "several":
            machine.run("random")
        shown = documents(machine.state, *(("1", "2") if runs == "several" else ("1",)))
        if runs == "many":
            shown = [{**shown[0], "run": number} for number in range(1, 5)]
    page = tmp_path / "page.html"
    page.write_text(html(shown))
    browser.show(page, width, dark)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate(OVERFLOWS) == []
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(REPEATS) == []
    assert browser.evaluate(PARTED) == []
    assert browser.evaluate(FAINT) == []
    assert browser.complaints == []
    if runs == "nasty":
        assert NASTY in browser.evaluate("document.body.textContent")


def test_the_first_screen_has_the_answer_and_how_to_undo_it(
    browser: Browser, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    page.write_text(html(documents(from_the_lab(tmp_path), "1")))
    browser.show(page, 1280)
    ends = browser.evaluate(
        "[...document.querySelectorAll('.verdict, #change-1, pre')].map(each =>"
        " each.getBoundingClientRect().bottom)"
    )
    # The verdict, the picture, and the commands to apply, keep and undo.
    assert len(ends) == 6
    assert max(ends) < 900


def test_the_browser_sees_what_overlaps_and_overflows(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        "<!DOCTYPE html><body style='background:#fff'><div style='width:50px;overflow:hidden'>"
        "<pre>wider than fifty pixels is this</pre></div><p style='color:#ccc'>faint</p>"
        "<svg width='100' height='50'><title>t</title><text x='5' y='20'>one</text>"
        "<text x='9' y='20'>two</text><text x='90' y='40'>outside</text>"
        "<g><g><g><g><text x='5' y='45'>0</text></g></g>"
        "<g><g><text x='30' y='45'>0</text></g></g></g></g>"
        "</svg>"
        "<p style='width:3em'><span class='word'>--two-lines</span></p><script>no.such()</script>"
    )
    browser.show(page, 390)
    assert browser.evaluate(PARTED) == ["--two-lines"]
    assert browser.evaluate(OVERFLOWS)
    assert browser.evaluate(OVERLAPS) == ["t: outside is outside", "t: one over two"]
    assert browser.evaluate(REPEATS) == ["t: twice 0"]
    assert len(browser.evaluate(FAINT)) == 1
    assert browser.complaints


def test_paper_is_light_whatever_the_screen_is(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(html(documents(from_the_lab(tmp_path), "1")))
    browser.show(page, 720, dark=True)
    colour = "getComputedStyle(document.body).backgroundColor"
    assert browser.evaluate(colour) == "rgb(16, 22, 28)"
    dark = {"name": "prefers-color-scheme", "value": "dark"}
    browser("Emulation.setEmulatedMedia", {"media": "print", "features": [dark]})
    assert browser.evaluate(colour) == "rgb(255, 255, 255)"
    assert browser.evaluate(FAINT) == []
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(OVERFLOWS) == []
    browser("Emulation.setEmulatedMedia", {"media": ""})


def test_on_paper_nothing_small_is_larger_than_the_text(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(html(documents(from_the_lab(tmp_path), "1")))
    browser.show(page, 720)
    browser("Emulation.setEmulatedMedia", {"media": "print"})
    sizes = (
        "['body', '.label', 'td', 'pre', 'figcaption small', 'h2'].map(e => "
        "parseFloat(getComputedStyle(document.querySelector(e)).fontSize))"
    )
    body, *small, head = browser.evaluate(sizes)
    assert max(small) < body < head
    browser("Emulation.setEmulatedMedia", {"media": ""})


def test_a_command_is_copied_as_it_is(browser: Browser, tmp_path: Path) -> None:
    shown = documents(from_the_lab(tmp_path), "1")
    page = tmp_path / "page.html"
    page.write_text(html(shown))
    browser.show(page, 390)
    copied = browser.evaluate(
        "[...document.querySelectorAll('pre code')].map(e => {"
        "getSelection().selectAllChildren(e); return getSelection().toString(); })"
    )
    assert copied == [each["command"] for each in shown[0]["commands"]]
