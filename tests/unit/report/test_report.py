"""A report shows what is stored, whatever that holds, and no figure that is not in its JSON."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import fake_run
import numpy as np
import pytest
import synthetic_run
from fake_run import Machine
from matplotlib.figure import Figure
from said_numbers import Reader, numbers_in, sayable
from stored_reports import NASTY, asked, documents, from_the_lab, nasty
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.problem.ceilings import Ceiling
from autotune.problem.setting import Value
from autotune.quantities import show_latency, show_rate
from autotune.report import pictures, run_rows, sentences, several_runs
from autotune.report.page import html as page_of
from autotune.report.sentences import costs, verdict
from autotune.store.database import Store
from autotune.tuning.preparation import GIVEN, Given

pytestmark = pytest.mark.filterwarnings("error")
RECORDED = Path(__file__).parents[1] / "recorded/2026-11/state"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path, monkeypatch)
    ceiling = Ceiling("resync", 25e6, None)
    assert machine.run("recipe", ceilings=(ceiling,)).keep
    return machine


PHRASES = re.compile(r"95 %|95 times of 100|p99\.9|p\d+|UTF-8|5 MB/s")
"""What the page says by itself."""


@pytest.mark.parametrize("real", [False, True])
def test_every_number_of_the_page_is_in_its_json(
    machine: Machine, tmp_path: Path, real: bool
) -> None:
    shown = documents(from_the_lab(tmp_path) if real else machine.state, "1")
    texts = [PHRASES.sub("", text) for text in Reader(page_of(shown)).texts]
    known = sayable(shown)
    said = {number for text in texts for number in numbers_in(text)}
    assert len(said) > 30
    assert said - known == set()
    # The test would see one that is not.
    shown[0]["gain"]["ratio"] = 7.77
    assert "7.77" in {n for text in Reader(page_of(shown)).texts for n in numbers_in(text)} - known


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_every_number_of_the_text_is_in_its_json(machine: Machine, form: str) -> None:
    known = sayable(documents(machine.state, "1"))
    said = PHRASES.sub("", asked(machine.state, "report", "1", "--format", form))
    assert set(numbers_in(said)) - known == set()


def test_the_report_says_what_run_and_solve_and_history_say(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    solved = json.loads(asked(machine.state, "solve", "1", "--json"))
    past = json.loads(asked(machine.state, "history", "1", "--json"))
    said = Store(machine.state).result(1)
    assert said is not None
    assert shown["gain"] == said["gain"]
    assert shown["gain"]["ratio"] == pytest.approx(solved["gain"]["value"])
    assert shown["named"] == past["named"]
    assert [t["number"] for t in shown["trials"]] == [t["number"] for t in past["trials"]]
    assert shown["ram_bytes"] == solved["ram_bytes"]
    for figure in shown["figures"]:
        name = figure["name"]
        assert figure["before"] == pytest.approx(said["figures"][name]["before"]), name
        assert figure["change"] == said["figures"][name]["change"], name
        assert figure["ceiling"] == pytest.approx(solved["figures"][name]["ceiling"]), name
        if figure["after"]:
            assert figure["after"] == pytest.approx(solved["figures"][name]["expected"]), name


def test_the_page_shows_distributions_and_seconds_of_both_sides(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    (latency,) = shown["distributions"]
    for side in ("before", "after"):
        ns, shares = zip(*latency[side]["slower"], strict=True)
        assert list(ns) == sorted(ns)
        assert list(shares) == sorted(shares, reverse=True)
        assert latency[side]["requests"] % sum(40 - n for n in range(5, 35)) == 0
    write = next(course for course in shown["courses"] if course["phase"] == "write")
    assert write["after"]["stripes"] == [256, 300, 350, 390]
    page = page_of([shown])
    for name in ("change", "trade", "trials", "effects", "distributions-0", "courses-0"):
        assert f'id="r1-{name}-title"' in page, name


def test_the_same_run_is_the_same_bytes(machine: Machine, tmp_path: Path) -> None:
    pages = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        words = ("-m", "autotune", "report", "1", "--state-dir", machine.state, "--out", out)
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"}
        subprocess.run((sys.executable, *words), check=True, env=env, capture_output=True)
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]
    assert len(pages[0]) < 300 * 1024


def test_what_comes_from_elsewhere_is_text(tmp_path: Path) -> None:
    nasty(tmp_path)
    page = page_of(documents(tmp_path, "1"))
    reader = Reader(page)
    assert "script" not in {tag for tag, _ in reader.tags}
    assert sum(NASTY in text for text in reader.texts) > 8
    assert not any(name.startswith("on") for _, attrs in reader.tags for name in attrs)
    marked = asked(tmp_path, "report", "1", "--format", "markdown")
    lines = [line for line in marked.splitlines() if not line.startswith("    ")]
    assert "<" not in "".join(lines).replace("\\<", "")
    assert "\x1b" not in page + marked + asked(tmp_path, "report", "1", "--format", "text")


def test_the_page_needs_nothing_from_elsewhere(machine: Machine) -> None:
    for tag, attrs in Reader(page_of(documents(machine.state, "1"))).tags:
        assert tag not in ("script", "link", "img", "iframe", "object")
        for name, value in attrs.items():
            if name in ("src", "href", "xlink:href", "clip-path"):
                assert (value or "").startswith(("#", "url(#")), (tag, name, value)


def test_an_option_is_a_word_of_its_own(machine: Machine) -> None:
    # Where there is no room, a browser begins a line before it, not after its first "-".
    page = page_of(documents(machine.state, "1"))
    assert '<span class="word">--persist</span> <span class="word">--state-dir</span>' in page


def test_pictures_have_the_font_of_the_page_and_no_digits_that_nobody_sees(
    machine: Machine,
) -> None:
    page = page_of(documents(machine.state, "1"))
    drawn = "".join(re.findall("<svg.*?</svg>", page, re.DOTALL))
    assert "font-family" not in drawn
    assert "rotate(-0 " not in drawn
    assert "rotate(-90 " in drawn
    assert not re.search(r' d="[^"]*\.\d{3}', drawn)


@pytest.mark.parametrize(
    ("low", "high", "word"), [(0.97, 1.05, "same"), (0.98, 2.21, "unclear"), (0.4, 1.0, "unclear")]
)
def test_what_noise_hides_is_not_called_the_same(
    machine: Machine, low: float, high: float, word: str
) -> None:
    (shown,) = documents(machine.state, "1")
    figure = next(each for each in shown["figures"] if each["name"] == "write.throughput")
    figure["change"] |= {"low": low, "high": high, "conclusion": "no difference"}
    assert next(row for row in run_rows.figure_rows(shown) if row[0] == figure["name"])[-1] == word
    assert any("unclear: " in words for words in sentences.terms(shown)) == (word == "unclear")


def test_a_dot_is_on_its_interval_however_far_it_is(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shown,) = documents(machine.state, "1")
    for trial, value in zip(shown["trials"], (0.05, 0.9, 40.0), strict=False):
        trial["gain"] = {"value": value, "low": value / 3, "high": value * 3}
    drawn: list[Figure] = []
    monkeypatch.setattr(pictures, "picture", lambda name, drawing, *_: drawn.append(drawing))
    pictures._trials("name", shown)
    lines = [list(np.asarray(line.get_ydata())) for line in drawn[0].axes[0].get_lines()]
    for (low, high), (value,) in zip(lines[0:6:2], lines[1:6:2], strict=True):
        assert low <= value <= high


def test_every_picture_has_a_title_and_a_description(machine: Machine) -> None:
    tags = Reader(page_of(documents(machine.state, "1"))).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    pictures = [attrs for tag, attrs in tags if tag == "svg"]
    assert len(pictures) > 5
    for attrs in pictures:
        assert attrs["role"] == "img"
        assert set((attrs["aria-labelledby"] or "").split()) <= set(ids)


def test_a_run_of_an_earlier_version_says_what_it_lacks(tmp_path: Path) -> None:
    state = shutil.copytree(RECORDED, tmp_path / "state")
    (done, killed) = documents(state, "1", "2")
    assert done["adopt"]
    assert done["gain"]["ratio"] > 1
    assert "older version" in " ".join(done["missing"])
    assert not done["effects"]
    assert killed["state"] == "interrupted"
    assert "did not finish (interrupted)" in page_of([killed])


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"read_ahead_kb": 768}, "Kept: no worse than the original settings; overall ×1.0"),
        ({"stripe_cache_size": 64}, "Keep what you have: worse beyond noise."),
        ({"stripe_cache_size": 1024}, "Better: overall ×1.5"),
    ],
)
def test_what_was_given_is_not_called_better_unless_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: dict[str, Value], said: str
) -> None:
    machine = Machine(tmp_path, monkeypatch)
    machine.run(GIVEN, given=Given("theirs", setting))
    text = asked(machine.state, "report", "1", "--format", "text")
    assert text.split("\n\n")[1].startswith(said)
    assert "Nothing was searched; a given combination was measured: theirs." in text
    (shown,) = documents(machine.state, "1")
    # A pass of re-tuning leaves no file to apply.
    first = shown["commands"][0]["what"] if shown["adopt"] else None
    assert first in (None, "write the profile")


def test_what_is_worse_is_said_with_the_verdict(tmp_path: Path) -> None:
    (shown,) = documents(from_the_lab(tmp_path), "1")
    first, second = verdict(shown).split(". ")
    assert first.startswith("Better: overall ×1.47 (")
    # No ceiling is about the p50, but it surely rises.
    worse = "resync.p50 rises from 37.5 ms to 76.1 ms and resync.p99 rises from 138 ms to 512 ms."
    assert second == f"The price: {worse}"
    assert not any("resync.p99" in text for text in costs(shown))
    shown["figures"] = [{**f, "change": None} for f in shown["figures"]]
    assert "The price" not in verdict(shown)


def test_a_run_in_the_lab_says_so_and_gives_no_commands_for_another_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = fake_run.result_document
    monkeypatch.setattr(fake_run, "result_document", lambda each: {**told(each), "lab": True})
    machine = Machine(tmp_path, monkeypatch)
    machine.run("recipe")
    (shown,) = documents(machine.state, "1")
    assert shown["lab"]
    assert shown["commands"] == []
    assert "In the lab, on simulated disks" in page_of([shown])


def test_commands_are_quoted_and_for_the_folder_that_the_run_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = fake_run.result_document
    kept = "/srv/my state/profiles/md0-run1.json"
    monkeypatch.setattr(
        fake_run, "result_document", lambda each: {**told(each), "profile_path": kept}
    )
    machine = Machine(tmp_path, monkeypatch)
    machine.run("recipe")
    (shown,) = documents(machine.state, "1")
    apply = shown["commands"][0]["command"]
    assert apply == f"autotune apply '{kept}' /dev/md0 --state-dir '/srv/my state'"


def test_what_was_measured_in_turn_and_not_kept_is_told(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    assert [each["setting"] for each in shown["in_turn"]] == [shown["compared"]["setting"]]
    gain = {"value": 1.25, "low": 0.9, "high": 1.7}
    other = {"setting": "read_ahead_kb 16384", "trials": [8, 9], "pairs": 1, "gain": gain}
    other["reason"] = ""
    shown["in_turn"].insert(0, other)
    said = "not kept: read_ahead_kb 16384: overall ×1.25 (0.90 to 1.70), measured once each."
    assert any(said in text for text in costs(shown))
    assert said in page_of([shown])
    other["reason"] = "it was slower"
    assert "not kept: read_ahead_kb 16384. Why: it was slower." in page_of([shown])


def test_a_p99_whose_interval_passes_its_ceiling_is_not_called_sure(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    (figure,) = (f for f in shown["figures"] if f["name"] == "resync.p99")
    figure.update(
        held="holds", ceiling=2e8, reaches=3e8, change={**shown["gain"], "conclusion": ""}
    )
    assert any("interval reaches 300 ms" in text for text in sentences.remarks(shown))
    figure["reaches"] = 1e8
    assert not any("interval reaches" in text for text in sentences.remarks(shown))


def test_trials_have_the_gain_of_their_setting_without_drift(tmp_path: Path) -> None:
    (shown,) = documents(from_the_lab(tmp_path), "1")
    gains = {t["number"]: t["gain"]["value"] for t in shown["trials"] if t["gain"]}
    originals = [
        gains[n] for point in shown["points"] if point["original"] for n in point["trials"]
    ]
    assert math.prod(originals) ** (1 / len(originals)) == pytest.approx(1.0, abs=0.02)
    compared = {*shown["compared"]["before"], *shown["compared"]["after"]}
    for point in shown["points"]:
        if len(point["trials"]) == 1 and not compared.intersection(point["trials"]):
            # A point knows more of what trials of other settings measured, too.
            assert gains[point["trials"][0]] == pytest.approx(point["gain"]["value"], rel=0.05)


def test_several_runs_stand_side_by_side(machine: Machine) -> None:
    machine.run("random")
    both = asked(machine.state, "report", "1", "2", "1", "--format", "markdown")
    assert both.count("autotune: /dev/md0, run") == 2
    assert "run 1 on /dev/md0 | run 2 on /dev/md0" in both
    shown = documents(machine.state, "1", "2")
    assert "Side by side" in page_of(shown)
    heads, *rows = several_runs.side_by_side(shown)
    found = {name: cells for name, *cells in rows}
    assert {len(row) for row in (heads, *rows)} == {3}
    for cell, run in zip(found["write.throughput"], shown, strict=True):
        figure = next(f for f in run["figures"] if f["name"] == "write.throughput")
        assert f"×{figure['change']['ratio']:.2f} ({figure['change']['low']:.2f} to" in cell
        assert cell.startswith(f"{show_rate(figure['before'])} → {show_rate(figure['after'])}, ×")
    assert found["stripe_cache_size"] == ["256 → 2048 stripes"] * 2
    assert found["sync_speed_max"] == ["200000 → 50000 KiB/s a member", "–"]
    limits = [f["ceiling"] for run in shown for f in run["figures"] if f["name"] == "resync.p99"]
    said = [f"resync.p99 {show_latency(limit)}" for limit in limits]
    assert found["ceilings"] == [said[0], f"{said[1]} (autotune's own)"]
    assert found["day"][0] == shown[0]["started"][:10]
    assert found["array"] == ["raid6 of 5 on hdd, chunk 64 KiB"] * 2
    assert found["compared with the original"] == [run["compared"]["setting"] for run in shown]
    assert "not the same" not in several_runs.note(shown)
    shown[1]["workload"] = {**shown[1]["workload"], "name": "other"}
    assert "compare the ratios, not the values" in several_runs.note(shown)


def test_many_runs_make_no_long_page(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    assert "What was tried" in page_of([shown])
    page = page_of([{**shown, "run": number} for number in range(12)])
    assert page.count("are on the page of this run alone") == 12
    assert page.count("Change of each figure") >= 12
    assert "What was tried</h2>" not in page
    assert len(page) < 300 * 1024


def test_a_style_is_said_once(machine: Machine) -> None:
    page = page_of(documents(machine.state, "1"))
    assert ' style="' not in page
    assert page.count("stroke-linecap: square }") > 3


def test_a_setting_has_its_unit(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    units = {name: unit for name, _, _, unit, _ in run_rows.change_rows(shown)}
    assert units == {"stripe_cache_size": "stripes", "sync_speed_max": "KiB/s a member"}


def test_a_ceiling_that_is_not_shown_to_hold_is_explained(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    (p99,) = (figure for figure in shown["figures"] if figure["name"] == "resync.p99")
    for held in ("holds", "broken", "not shown"):
        p99["held"] = held
        explained = any(words.startswith("not shown: ") for words in sentences.terms(shown))
        assert explained == (held == "not shown")


def test_a_run_without_original_figures_is_refused(tmp_path: Path) -> None:
    Store(tmp_path).start_run("u", "/dev/md0", "print", synthetic_run.problem())
    done = CliRunner().invoke(app, ["report", "1", "--state-dir", str(tmp_path)])
    assert done.exit_code != 0
    assert "nothing to compare with" in str(done.exception)


@pytest.mark.parametrize(
    "words",
    [("report", "7"), ("report", "1", "--format", "pdf"), ("report", "1", "--json", "--out", "x")],
)
def test_what_is_not_there_is_wrong_usage(machine: Machine, words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "--state-dir", str(machine.state)])
    assert getattr(done.exception, "exit_code", None) == 2


def test_texts_are_no_wider_than_a_terminal(machine: Machine) -> None:
    text = asked(machine.state, "report", "1", "--format", "text")
    assert text.startswith("autotune: /dev/md0, run 1\n\nBetter: overall ×")
    assert datetime.now(UTC).strftime("%Y-%m-%d") in text
    # Commands are there to be copied.
    assert [ln for ln in text.splitlines() if len(ln) > 80 and "autotune" not in ln] == []


def test_a_real_run_fits_80_columns_in_tables(tmp_path: Path) -> None:
    text = asked(from_the_lab(tmp_path), "report", "1", "--format", "text")
    # A command is copied in one line, however long its folder is.
    long = ("--state-dir", str(tmp_path))
    lines = [line for line in text.splitlines() if not any(each in line for each in long)]
    assert max(map(len, lines)) <= 80
    for head in ("original   new        change (95 %)", "setting            original  new"):
        assert head in text
    assert any(line.startswith("trials ") for line in text.splitlines())


def test_a_page_leaves_nothing_in_the_home_folder(machine: Machine, tmp_path: Path) -> None:
    """As matplotlib does by itself."""
    home = tmp_path / "home"
    home.mkdir()
    words = ["report", "1", "--state-dir", str(machine.state), "--out", str(tmp_path / "r.html")]
    env = {"PATH": os.environ["PATH"], "HOME": str(home)}
    subprocess.run([sys.executable, "-m", "autotune", *words], env=env, check=True)
    assert list(home.iterdir()) == []


def test_a_change_that_is_alone_brings_all_of_the_gain(machine: Machine) -> None:
    (shown,) = documents(machine.state, "1")
    (row,) = run_rows.change_rows({"changes": shown["changes"][:1]})
    assert row[-1] == "all of it"
