"""A design that is kept, and what a report shows of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import some_design
from stored_reports import NASTY, asked, documents
from typer.testing import CliRunner

from autotune.cli.complete import what_to_report
from autotune.cli.main import app
from autotune.design.stored import find, keep, names
from autotune.errors import AutotuneError, UsageError
from autotune.report.design_document import document
from autotune.report.page import html
from autotune.untrusted import harmless_throughout


def kept(state: Path, **changed: object) -> str:
    return keep({**document(some_design.result(), made=False), **changed}, state)


def test_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.design.stored.MOST_KEPT", 2)
    for _ in range(4):
        kept(tmp_path)
    assert names(tmp_path) == ["design-3", "design-4"]


def test_designs_are_numbered_and_found_again(tmp_path: Path) -> None:
    assert [kept(tmp_path) for _ in range(11)][-1] == "design-11"
    assert names(tmp_path) == [f"design-{n}" for n in range(1, 12)]
    assert find("design-11", tmp_path)["name"] == "design-11"
    (tmp_path / "designs/design-2.json").unlink()
    assert kept(tmp_path) == "design-12"
    assert (tmp_path / "designs").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, "{"])
def test_one_that_is_damaged_is_said_to_be_so(tmp_path: Path, text: str) -> None:
    kept(tmp_path)
    (tmp_path / "designs/design-1.json").write_text(text)
    with pytest.raises(UsageError, match="is damaged; remove it"):
        find("design-1", tmp_path)


@pytest.mark.parametrize("missing", ["finalists", "winner", "figures", "environment", "kind"])
def test_one_of_another_version_is_refused_with_a_sentence(tmp_path: Path, missing: str) -> None:
    found = document(some_design.result(), made=False)
    del found[missing]
    keep(found, tmp_path)
    words = ["report", "design-1", "--format", "text", "--state-dir", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, AutotuneError)
    assert "What is stored of design-1 cannot be understood" in str(done.exception)


def test_one_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no design-1; none was made yet"):
        find("design-1", tmp_path)
    kept(tmp_path)
    with pytest.raises(UsageError, match="There is no design-2; there are design-1"):
        find("design-2", tmp_path)


def test_a_design_in_the_lab_says_so_and_gives_no_commands_for_other_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOTUNE_LAB", "1")
    kept(tmp_path)
    (found,) = documents(tmp_path, "design-1")
    for said in (html([found]), asked(tmp_path, "report", "design-1", "--format", "text")):
        assert "In the lab, on simulated disks." in said
        assert "mdadm --create" not in said
        assert "mkfs" not in said


def test_every_form_has_the_answer_the_figures_and_the_commands(tmp_path: Path) -> None:
    kept(tmp_path)
    (found,) = documents(tmp_path, "design-1")
    page = html([found])
    for form in ("text", "markdown"):
        said = asked(tmp_path, "report", "design-1", "--format", form)
        for each in found["commands"].values():
            assert each in said
        plain = " ".join(said.replace("\\", "").split())
        assert (
            "Take B, raid10, f2, 128 KiB chunks, bitmap: better beyond noise, overall ×1.42"
            in plain
        )
        assert "×1.42 (1.35–1.50)" in plain
        for figure in found["figures"]:
            if not figure["name"].endswith(("p50", "p999")):
                assert figure["name"] in plain
                assert figure["name"] in page
        assert "21.1 ms (19.7 to 22.7), over" in plain
    assert page.count("<svg") == 1 + sum(
        not each["name"].endswith(("p50", "p999")) for each in found["figures"]
    )
    lines = asked(tmp_path, "report", "design-1", "--format", "text").splitlines()
    assert max(len(line) for line in lines if not line.startswith("  ")) <= 80


def test_nothing_better_is_an_answer_too(tmp_path: Path) -> None:
    keep(document(some_design.result(better=False), made=False), tmp_path)
    said = " ".join(asked(tmp_path, "report", "design-1", "--format", "text").split())
    assert "nothing was proven better than mdadm's default" in said


def test_what_comes_from_elsewhere_is_text(tmp_path: Path) -> None:
    disks = [{"device": NASTY, "bytes": 1 << 40, "media": "hdd"}]
    kept(tmp_path, disks=disks, stopped=NASTY, workload=NASTY, command=f"{NASTY}\x1b[31m")
    page = html([harmless_throughout(each) for each in documents(tmp_path, "design-1")])
    assert "<script" not in page
    assert "\x1b" not in page
    assert page.count("&lt;script&gt;") >= 4


def test_the_same_design_is_the_same_bytes(tmp_path: Path) -> None:
    kept(tmp_path)
    pages = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        words = ("-m", "autotune", "report", "design-1", "--state-dir", tmp_path, "--out", out)
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run((sys.executable, *words), check=True, env=env, capture_output=True)
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]
    assert len(pages[0]) < 300 * 1024


def test_it_stands_beside_runs(tmp_path: Path) -> None:
    kept(tmp_path)
    kept(tmp_path)
    both = documents(tmp_path, "design-1", "design-2")
    page = html(both)
    assert "<title>autotune: design-1; design-2</title>" in page
    assert json.dumps([each["name"] for each in both]) == '["design-1", "design-2"]'


def test_it_can_be_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autotune.cli.complete.STATE_DIR", tmp_path)
    kept(tmp_path)
    assert "design-1" in what_to_report("des")
