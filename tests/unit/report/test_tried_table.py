"""The settings that were tried: picture, ceiling and tables have the same numbers."""

import re
from pathlib import Path
from typing import Any

import pytest
from stored_reports import documents, drifting, from_the_lab

from autotune.report import tried_table
from autotune.report.pictures import pictures


def in_ms(shown: str) -> float:
    number, unit = shown.split()
    return float(number) * {"ms": 1.0, "s": 1e3}[unit]


def dots(run: dict[str, Any]) -> str:
    return pictures(run)["trade"].description


@pytest.mark.parametrize("real", [False, True])
def test_dot_ceiling_and_table_agree(tmp_path: Path, real: bool) -> None:
    run = documents(from_the_lab(tmp_path), "1")[0] if real else drifting(tmp_path, resync=70)
    (figure,) = (f for f in run["figures"] if f["ceiling"])
    heads, rows = tried_table.heads(run), tried_table.rows(run)
    assert heads[2] == figure["name"] == "resync.p99"
    measured = [row for row in rows if row[2] != "–"]
    # What the picture draws is what the table says.
    assert sorted(re.findall(r"p99 ([\d.]+ m?s)", dots(run))) == sorted(r[2] for r in measured)
    for row in measured:
        assert (row[3] == "hold") == (in_ms(row[2]) <= figure["ceiling"] / 1e6)
    baseline = next(point for point in run["points"] if point["original"])
    assert baseline["p99s"][figure["name"]] == pytest.approx(figure["before"])
    if real:
        # And what was proven has the figures of the verdict.
        after = next(p for p in run["points"] if p["trials"] == [11, 14])
        assert after["p99s"][figure["name"]] == pytest.approx(figure["after"])
        assert after["gain"]["value"] == pytest.approx(run["gain"]["ratio"], rel=0.01)


def test_a_slower_array_is_taken_out_and_that_is_said(tmp_path: Path) -> None:
    run = drifting(tmp_path, resync=70)
    rows = {row[0]: row for row in tried_table.rows(run)}
    # Trial 5 measured 100 ms when the original settings had become twice as slow.
    assert in_ms(rows["5"][2]) == pytest.approx(50, rel=0.05)
    assert rows["5"][3] == "hold"
    assert "is taken out" in tried_table.note(run)
    assert f"`{run['history']}` lists what each trial measured" in tried_table.note(run)
    # What was ended is there, too.
    assert rows["7"][1:4] == ("–", "–", "")
    assert "aborted" in rows["7"][4]


def test_each_p99_with_a_ceiling_has_a_column_and_a_panel(tmp_path: Path) -> None:
    run = drifting(tmp_path, idle=30, write=50, resync=70)
    names = ("idle.p99", "write.p99", "resync.p99")
    assert tried_table.heads(run)[2:6] == (*names, "ceilings")
    shown = {
        name: {row[column] for row in tried_table.rows(run)} - {"–"}
        for column, name in enumerate(names, 2)
    }
    assert "=" in shown["idle.p99"]
    # No setting moved that: it has no panel.
    assert "idle.p99" not in dots(run)
    for name in names[1:]:
        assert shown[name] == set(re.findall(rf"{name} ([\d.]+ m?s)", dots(run)))


def test_without_a_ceiling_there_is_no_p99(tmp_path: Path) -> None:
    run = drifting(tmp_path)
    for figure in run["figures"]:
        figure["ceiling"] = None
    assert tried_table.heads(run) == ("trials", "overall", "settings")
    assert {len(row) for row in tried_table.rows(run)} == {3}
    assert "trade" not in pictures(run)


def test_the_trials_of_the_proof_stand_beside_each_other(tmp_path: Path) -> None:
    """Their mean is what the verdict says."""
    (run,) = documents(from_the_lab(tmp_path), "1")
    gains = {t["number"]: t["gain"]["value"] for t in run["trials"] if t["gain"]}
    assert (gains[11] * gains[14]) ** 0.5 == pytest.approx(run["gain"]["ratio"], rel=0.005)
    assert (gains[12] * gains[13]) ** 0.5 == pytest.approx(1.0, rel=0.005)
