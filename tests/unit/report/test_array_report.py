"""A report of an array shows what is stored of it, and no figure that is not in its JSON."""

import dataclasses
import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from profiles_in_force import apply_values, persist_values, start
from rich.console import Console
from said_numbers import Reader, numbers_in, sayable
from some_array import DEVICE, UUID, some_advice, store_array, store_little
from some_forecast import some_forecast
from some_windows import FIRST
from stored_reports import NASTY, asked, documents, from_the_lab
from typer.testing import CliRunner

from autotune.advice import stored as advices
from autotune.cli.main import app
from autotune.deploy.status import ArrayStatus
from autotune.report import (
    array_pictures,
    array_rows,
    array_words,
    check,
    guarded_picture,
    passes,
    stored_array,
)
from autotune.report.advice import advice_document
from autotune.report.drawing import figure
from autotune.report.page import html as page_of
from autotune.report.plain_report import markdown, text
from autotune.service import history
from autotune.sync_forecast import stored as forecasts
from autotune.system import sysfs
from autotune.system.array import Array, find_array

pytestmark = pytest.mark.filterwarnings("error")
PHRASES = re.compile(r"95 %|95 times of 100|p99|-{2}json")
"""What the page says by itself."""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    store_array(tmp_path)
    return tmp_path


def the_array(state: Path, name: str = DEVICE) -> dict[str, Any]:
    (found,) = documents(state, name)
    return found


def figures(array: dict[str, Any]) -> list[dict[str, Any]]:
    """What may be said of it: of what is only drawn, the ends."""
    syncs = []
    for sync in array["syncs"]:
        columns = {n: [v for v in column if v] for n, column in sync["points"].items()}
        ends = {n: [min(v), max(v)] for n, v in columns.items() if v}
        syncs.append({**sync, "points": ends})
    forecast = {**array["forecast"], "curve": array["forecast"]["curve"][-1]}
    # Rates are said in bytes, shares in percent, and how many there are of a list.
    more: list[float] = [row["kib_s"] * 1024 for row in forecast["speeds"]]
    more += [100 * check["share"] for check in array["checks"]]
    felt = [check["p99"] for check in array["checks"] if check["p99"]["measurements"]]
    more += [round(100 * each["held"] / each["measurements"]) for each in felt]
    held = [(s["held"], s["summary"]["judged"]) for s in array["syncs"] if s["held"]]
    more += [round(100 * part / whole) for part, whole in held]
    more += [len(array[part]) for part in ("checks", "syncs")]
    more += [sum(c["complete"] for c in array["checks"]), len(array["advice"]["findings"])]
    more += [sum(c["mismatch_sectors"] > 0 for c in array["checks"])]
    return [{**array, "syncs": syncs, "forecast": forecast, "more": more}]


def test_every_number_of_the_page_is_in_its_json(state: Path) -> None:
    shown = [the_array(state)]
    texts = [PHRASES.sub("", text) for text in Reader(page_of(shown)).texts]
    said = {number for text in texts for number in numbers_in(text)}
    assert len(said) > 100
    known = sayable(figures(shown[0]))
    assert said - known == set()
    # The test would see one that is not.
    shown[0]["syncs"][0]["seconds"] = 7777 * 86_400.0
    assert "7777" in {n for text in Reader(page_of(shown)).texts for n in numbers_in(text)} - known


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_every_number_of_the_text_is_in_its_json(state: Path, form: str) -> None:
    said = PHRASES.sub("", asked(state, "report", DEVICE, "--format", form))
    assert set(numbers_in(said)) - sayable(figures(the_array(state))) == set()


def test_it_says_what_guard_forecast_and_retune_said(state: Path) -> None:
    found = the_array(state)
    newest = found["syncs"][0]
    assert [sync["summary"] is None for sync in found["syncs"]] == [False, False, False, True]
    assert newest["held"] == newest["summary"]["judged"] - newest["summary"]["over"]
    past = json.loads(asked(state, "history", "--forecasts", "--json"))
    assert {**found["forecast"], **past[0]} == found["forecast"]
    known = history.load(state, UUID).passes
    assert found["passes"] == [each.model_dump(mode="json") for each in known]
    text = asked(state, "report", "md0", "--format", "text")
    assert "It ended 1 h 23 min before the deadline." in " ".join(text.split())
    assert "was interrupted after 8 min 15 s" in page_of([{**found, "syncs": found["syncs"][3:]}])
    for gone in ("77 measurements", NASTY):
        assert gone not in text


def test_it_says_what_check_history_and_advise_said(state: Path) -> None:
    found = the_array(state)
    checks = json.loads(asked(state, "history", "--checks", "--json"))
    assert found["checks"] == checks
    assert [check["mismatch_sectors"] for check in found["checks"]].count(136) == 1
    assert [run["run"] for run in found["runs"]] == [4, 3, 2, 1]
    # The guard on its array being held by nobody, it was killed.
    assert [run["state"] for run in found["runs"]] == ["interrupted", "failed", "done", "done"]
    assert found["runs"][1]["gain"] is None
    assert found["runs"][2]["gain"]["ratio"] == 1.01
    assert found["advice"]["looked"] == "2026-11-20T09:30:00+00:00"
    advice = advice_document(some_advice())
    assert {**found["advice"], **json.loads(json.dumps(advice))} == found["advice"]
    marked = asked(state, "report", DEVICE, "--format", "markdown")
    assert "    tune2fs -E stride=16,stripe_width=48 /dev/md0\n" in marked
    assert "    advise" not in marked
    assert "    # mdadm /dev/md0 --add NEW\n    # mdadm" in marked
    assert "Commented out: what is on NEW is lost." in marked
    assert found["advice"]["findings"][1]["commands"][0] == "# mdadm /dev/md0 --add NEW"
    text = asked(state, "report", DEVICE, "--format", "text")
    for said in (
        "2026-10-27 01:00 UTC: at 50 % in 2 parts, 6 h 28 min: no mismatch.",
        "2026-11-20 09:30 UTC: 2 findings (ext4-stripe, slow-member).",
        "Not looked at: lvm-alignment: needs lvm2 (`apt install lvm2`).",
        "silenced in the configuration: shared-disk.",
        "measured:",
    ):
        assert said in " ".join(text.split()), said
    prose = (line for line in text.splitlines() if not line.startswith(" "))
    assert max(map(len, prose)) <= 80


def test_the_text_has_tables_of_80_columns(state: Path) -> None:
    """Only commands may be longer, which are there to be copied."""
    text = asked(state, "report", DEVICE, "--format", "text")
    assert [ln for ln in text.splitlines() if len(ln) > 80 and not ln.startswith("  ")] == []
    for head in (
        "began (UTC)       what      took         ceiling   held     p99      ended",
        "began       state     time         differing  median   p99      ceiling  held",
        "each member  check takes      p99 in a check   rebuild takes    p99 in a rebuild",
        "date        outcome    throughput            took        why",
        "run  began       what             overall (95 %)        trials  outcome",
    ):
        assert head in map(str.rstrip, text.splitlines()), head


def test_every_table_begins_with_the_newest_and_says_so(state: Path) -> None:
    text = " ".join(asked(state, "report", DEVICE, "--format", "text").split())
    assert "tables that begin with the newest." in text
    assert "tables that begin with the newest." in page_of([the_array(state)])
    for part, column in (("Guarded syncs", 16), ("Checks", 10), ("Passes of re-tuning", 10)):
        dates = re.findall(r"20\d\d-\d\d-\d\d", text[text.index(part) :][: 80 * column])
        assert dates[0] == max(dates), part
    out = io.StringIO()
    passes.print_passes(Console(file=out, width=80), DEVICE, history.load(state, UUID).passes)
    head, _, *rows = out.getvalue().splitlines()
    assert head == f"{DEVICE}: 50 passes, the newest first"
    dates = [row.split()[0] for row in rows if row.startswith("20")]
    assert dates == sorted(dates, reverse=True)
    assert len(dates) == 50
    assert max(map(len, rows)) <= 80


def test_what_a_ceiling_held_is_a_share_of_the_time(state: Path) -> None:
    text = " ".join(asked(state, "report", DEVICE, "--format", "text").split())
    assert "within 80.0 ms for 86 % of the measured time" in text
    assert "within 70.0 ms for 92 % of the measured time" in text
    assert not re.search(r"of (16997|40|47)\b", text)


def test_damaged_advice_is_none(state: Path) -> None:
    path = advices.path_of(state, UUID)
    document = json.loads(path.read_text())
    for damaged in ("", "[]", json.dumps({**document, "advice": {"device": 5}}), "\x00"):
        path.write_text(damaged)
        assert the_array(state)["advice"] is None


def test_a_curve_goes_through_what_was_measured(state: Path) -> None:
    forecast = the_array(state)["forecast"]
    speeds = [at["kib_s"] for at in forecast["curve"]]
    assert speeds == sorted(speeds)
    assert speeds[0] == pytest.approx(forecast["speeds"][0]["kib_s"])
    assert speeds[-1] == pytest.approx(forecast["full_kib_s"])
    times = [at["seconds"]["rebuild"]["value"] for at in forecast["curve"]]
    assert times == sorted(times, reverse=True)
    # At full speed it says what `forecast` says.
    full = forecast["speeds"][-1]["seconds"]["rebuild"]
    assert forecast["curve"][-1]["seconds"]["rebuild"] == pytest.approx(full)


def test_the_page_has_a_picture_of_each(state: Path) -> None:
    page = page_of([the_array(state)])
    for name in ("syncs-0", "syncs-1", "syncs-2", "checks", "forecast", "passes"):
        assert f'id="a0-{name}-title"' in page, name
    assert "syncs-3" not in page
    assert len(page) < 300 * 1024
    tags = Reader(page).tags
    ids = [attrs["id"] for _, attrs in tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert "script" not in {tag for tag, _ in tags}


def svgs(page: str) -> dict[str, str]:
    """The pictures of a page, by name."""
    return {
        re.findall(r'aria-labelledby="a0-([\w-]+)-title', svg)[0]: svg
        for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    }


def test_a_picture_is_not_named_as_its_part_of_the_page(state: Path) -> None:
    page = page_of([the_array(state)])
    parts = set(re.findall("<h2>(.*?)</h2>", page))
    assert len(parts) > 6
    assert not parts & set(re.findall("<figcaption>(.*?)<", page))


def test_a_single_speed_of_a_forecast_has_its_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_little(tmp_path)
    shown = the_array(tmp_path)
    assert len(shown["forecast"]["curve"]) == 1
    rebuild = shown["forecast"]["curve"][0]["seconds"]["rebuild"]
    assert rebuild["low"] < rebuild["high"]
    drawn: list[Figure] = []
    monkeypatch.setattr(array_pictures, "picture", lambda name, drawing, *_: drawn.append(drawing))
    array_pictures._forecast("name", shown["forecast"])
    for axes in drawn[0].axes:
        lines = [each for each in axes.collections if isinstance(each, LineCollection)]
        assert len(lines) == 2, "of a check and of a rebuild"


def test_a_picture_names_no_line_that_is_not_drawn(state: Path) -> None:
    shown = the_array(state)
    drawn = svgs(page_of([shown]))
    assert ">limit<" in drawn["syncs-0"]
    assert not any(shown["syncs"][1]["points"]["held_bytes_per_s"])
    assert ">limit<" not in drawn["syncs-1"]
    # Where a line is missing, it says why.
    assert ">users sent hardly any requests<" in drawn["syncs-1"]
    assert ">users sent hardly any requests<" not in drawn["syncs-0"]


def test_the_end_in_the_picture_is_the_one_in_the_table(state: Path) -> None:
    sync = the_array(state)["syncs"][2]
    assert sync["seconds"] == 100
    assert max(sync["points"]["seconds"]) == 95
    _, (axes,) = figure(1.0)
    guarded_picture._end(axes, sync["points"]["seconds"], sync, 1.0, "seconds")
    (end,) = (line for line in axes.get_lines() if line.get_label() == "real end")
    assert list(end.get_ydata()) == [100, 100]  # type: ignore[arg-type]
    assert ">100<" in svgs(page_of([the_array(state)]))["syncs-2"]


def test_the_same_array_is_the_same_bytes(state: Path) -> None:
    pages = []
    for seed in ("1", "2"):
        out = state / f"{seed}.html"
        words = ("-m", "autotune", "report", DEVICE, "--state-dir", state, "--out", out)
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC-{seed}"}
        subprocess.run((sys.executable, *words), check=True, env=env, capture_output=True)
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]


def test_runs_and_arrays_share_a_page(state: Path, tmp_path: Path) -> None:
    for file in state.glob("autotune.db*"):
        file.unlink()
    shutil.copytree(from_the_lab(tmp_path / "copy"), state, dirs_exist_ok=True)
    both = documents(state, "1", DEVICE)
    assert [each["kind"] for each in both] == ["run", "array"]
    page = page_of(both)
    assert 'id="r1-change-title"' in page
    assert 'id="a1-forecast-title"' in page
    assert "<title>autotune: /dev/md0, run 1; /dev/md0</title>" in page


PARTS = ("guarded", "checks", "forecasts", "retune", "advice")


@pytest.mark.parametrize("part", [*PARTS, "autotune.db"])
def test_one_part_is_enough_and_what_is_missing_is_said(state: Path, part: str) -> None:
    for other in set(PARTS) - {part}:
        shutil.rmtree(state / other)
    # Passes are runs, and so is the name of the array known.
    if runs := part not in ("autotune.db", "retune"):
        for file in state.glob("autotune.db*"):
            file.unlink()
    found = the_array(state)
    assert found["uuid"] == UUID
    assert len(found["missing"]) == 6 - (part == "retune")
    assert bool(found["runs"]) != runs
    # Something is said of it first, and how it was got.
    assert len(array_words.short(found)) == 1
    with_p99 = part in ("guarded", "checks", "forecasts")
    assert len(array_words.how([found])) == 1 + with_p99 + (part == "retune")
    assert page_of([found])
    assert asked(state, "report", DEVICE, "--format", "markdown")


def test_an_array_is_found_by_its_uuid_and_the_newest_of_a_name_is_meant(state: Path) -> None:
    newer = dataclasses.replace(some_forecast(), uuid="cd" * 16, made_s=FIRST.time_s + 1e9)
    forecasts.keep(newer, state)
    assert the_array(state)["uuid"] == "cd" * 16
    assert the_array(state, UUID)["uuid"] == UUID
    assert the_array(state, ":".join([UUID[:8].upper()] * 4))["uuid"] == UUID


@pytest.mark.parametrize("how", ["none", "applied", "persisted"])
def test_what_is_in_force_is_said_where_the_array_is(
    state: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    machine = fake_sysfs.raid6(tmp_path_factory.mktemp("machine"))
    machine.put("sys/block/md0/md/uuid", UUID)
    (machine.root / "etc/udev").mkdir(parents=True)
    array = find_array("md0", machine.root)
    monkeypatch.setattr(stored_array, "find_array", lambda _name: array)
    start(machine.root)
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    if how != "none":
        {"applied": apply_values, "persisted": persist_values}[how](
            array, {"read_ahead_kb": 512}, state
        )
    shown = the_array(state)
    said = dict(array_words.short(shown))["in force"]
    assert ("read_ahead_kb 512" in said) == (how != "none")
    assert (" is applied, and persisted:" in said) == (how == "persisted")
    if how == "applied":
        (array.block / "queue/read_ahead_kb").write_text("77\n")
        said = dict(array_words.short(the_array(state)))["in force"]
        assert "Differs: read_ahead_kb reads 77." in said
    (line,) = [
        line
        for line in Reader(page_of([shown])).texts
        if "no profile" in line or "is applied, " in line
    ]
    assert line.partition(".")[0] == said.partition(".")[0]


def test_of_an_array_elsewhere_it_is_not_known_what_is_in_force(state: Path) -> None:
    shown = the_array(state)
    assert shown["in_force"] is None
    assert "in force" not in dict(array_words.short(shown))
    assert "Which profile is in force: the array is not on this machine" in text([shown])


def test_what_is_in_force_and_cannot_be_read_keeps_no_page_from_its_reader(
    state: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_array: Array, _state: Path) -> ArrayStatus:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), "/etc/autotune/persisted")

    machine = fake_sysfs.raid6(tmp_path_factory.mktemp("machine"))
    machine.put("sys/block/md0/md/uuid", UUID)
    array = find_array("md0", machine.root)
    monkeypatch.setattr(stored_array, "find_array", lambda _name: array)
    monkeypatch.setattr(stored_array, "status", refused)
    assert the_array(state)["in_force"] is None


def test_little_is_drawn_too(tmp_path: Path) -> None:
    store_little(tmp_path)
    assert page_of([the_array(tmp_path)]).count("<svg") == 4


def test_what_comes_from_elsewhere_is_text(state: Path) -> None:
    shown = the_array(state)
    shown["device"] = shown["syncs"][0]["action"] = shown["passes"][0]["outcome"] = NASTY
    shown["passes"][0]["reasons"] = [NASTY]
    finding = shown["advice"]["findings"][0]
    for key in ("name", "seen", "cost", "source", "note"):
        finding[key] = NASTY
    finding["commands"] = [NASTY]
    shown["advice"]["not_looked_at"] = {NASTY: NASTY}
    shown["runs"][0] |= {"given": NASTY, "outcome": NASTY}
    shown["checks"][0]["given_up"] = NASTY
    page = page_of([shown])
    assert "script" not in {tag for tag, _ in Reader(page).tags}
    assert sum(NASTY in text for text in Reader(page).texts) > 10
    lines = [ln for ln in markdown([shown]).splitlines() if not ln.startswith("    ")]
    assert "<" not in "".join(lines).replace("\\<", "")


@pytest.mark.parametrize("name", ["/dev/md7", "nonsense", "7", "1" * 5000])
def test_what_is_not_there_is_wrong_usage(state: Path, name: str) -> None:
    done = CliRunner().invoke(app, ["report", name, "--state-dir", str(state)])
    assert getattr(done.exception, "exit_code", None) == 2


def test_its_file_is_named_after_it(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(state)
    asked(state, "report", DEVICE)
    assert (state / "autotune-md0.html").exists()


def test_old_passes_that_changed_nothing_are_counted_not_listed(state: Path) -> None:
    found = the_array(state)
    rows = array_rows.pass_rows(found)
    assert [row[0] for row in rows] == sorted((row[0] for row in rows), reverse=True)
    newest = [each["outcome"] for each in reversed(found["passes"])]
    changed = [each for each in newest[12:] if each not in ("unchanged", "kept")]
    assert [row[1] for row in rows] == newest[:12] + changed
    left = len(found["passes"]) - len(rows)
    said = f"{left} older passes in which the profile stayed: the picture and --json have them."
    assert said in array_words.not_shown(found)
    few = {**found, "passes": found["passes"][-12:]}
    assert len(array_rows.pass_rows(few)) == 12
    assert not any("older pass" in text for text in array_words.not_shown(few))


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_a_part_of_which_there_is_nothing_says_so(state: Path, form: str) -> None:
    shown = the_array(state)
    shown["advice"] |= {"findings": [], "silenced": [], "not_looked_at": {}}
    shown["forecast"]["speeds"] = []
    said = (
        page_of([shown]) if form == "html" else {"text": text, "markdown": markdown}[form]([shown])
    )
    assert re.search(r"Advice\S*\s+(<p>)?2026-11-20 09:30 UTC: no finding", said)
    # A table is not its heads alone.
    assert "check takes" not in said.replace("\n", " ")


def test_the_array_is_named_as_mdadm_does(state: Path) -> None:
    said = " ".join(asked(state, "report", DEVICE, "--format", "text").split())
    assert f"the md array {':'.join([UUID[:8]] * 4)}: the newest" in said


def test_a_policy_is_not_taken_for_a_ceiling(state: Path) -> None:
    ceilings = [row[3] for row in array_rows.sync_rows(the_array(state))]
    assert ceilings == ["80.0 ms", "80.0 ms", "policy balanced", "80.0 ms"]


def test_a_check_that_did_not_end_is_never_at_100_percent() -> None:
    almost = {"complete": False, "given_up": False, "share": 0.9999}
    assert check.state(almost) == "at >99 %"
