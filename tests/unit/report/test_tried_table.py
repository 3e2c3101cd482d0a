"""The settings that were tried: picture, ceiling and tables have the same numbers."""

import re
from pathlib import Path
from typing import Any

import pytest
import synthetic_run
from stored_reports import documents, from_the_lab

from autotune.problem.trial import Status
from autotune.report import tried_table
from autotune.report.pictures import pictures
from autotune.store.database import Store


def drifting(state: Path, **ceilings: float) -> dict[str, Any]:
    """A run whose array became twice as slow to answer on the way, under these ceilings (ms)."""
    limits = {name: ms * synthetic_run.MS for name, ms in ceilings.items()}
    store = Store(state)
    run = store.start_run("u", "/dev/md0", "print", synthetic_run.problem(**limits))
    for number, role, stripes, write, p99_ms in (
        *((1, "baseline", 256, 100, 40), (2, "baseline", 256, 100, 40)),
        *((3, "search", 1024, 150, 50), (4, "baseline", 256, 100, 80)),
        *((5, "search", 4096, 180, 100), (6, "baseline", 256, 100, 80)),
    ):
        figures = synthetic_run.figures(write, 30, 100, p99_ms)
        store.add_trial(
            run, synthetic_run.trial(number, role, {"stripe_cache_size": stripes}, figures)
        )
    aborted = synthetic_run.trial(7, "search", {"sync_speed_max": 5000}, {}, (), Status.ABORTED)
    store.add_trial(run, aborted)
    store.finish_run(run, "done", "nothing looked better", None, {"figures": {}})
    (found,) = documents(state, "1")
    return found


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
    for point in run["points"]:
        assert tried_table.p99_of(run, point) == pytest.approx(
            point["p99"]["value"] * figure["before"]
        )
    home = next(point for point in run["points"] if point["original"])
    assert tried_table.p99_of(run, home) == pytest.approx(figure["before"])
    if real:
        # And what was proven has the figures of the verdict.
        after = next(p for p in run["points"] if p["trials"] == [11, 14])
        assert tried_table.p99_of(run, after) == pytest.approx(figure["after"])
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


def test_several_ceilings_have_a_mean_that_is_named(tmp_path: Path) -> None:
    run = drifting(tmp_path, resync=70, write=50)
    assert tried_table.heads(run)[2] == "p99, mean"
    assert "mean (geometric) of write.p99, resync.p99" in tried_table.note(run)
    shown = {row[2] for row in tried_table.rows(run)} - {"–"}
    assert shown == set(re.findall(r"p99 (×\d\.\d\d)", dots(run)))


def test_without_a_p99_there_is_none(tmp_path: Path) -> None:
    run = drifting(tmp_path)
    for point in run["points"]:
        point["p99"] = None
    for figure in run["figures"]:
        figure["ceiling"] = None
    assert {row[2] for row in tried_table.rows(run)} == {"–"}
    assert "mean (geometric)" not in tried_table.note(run)


def test_the_trials_of_the_proof_stand_beside_each_other(tmp_path: Path) -> None:
    """Their mean is what the verdict says."""
    (run,) = documents(from_the_lab(tmp_path), "1")
    gains = {t["number"]: t["gain"]["value"] for t in run["trials"] if t["gain"]}
    assert (gains[11] * gains[14]) ** 0.5 == pytest.approx(run["gain"]["ratio"], rel=0.005)
    assert (gains[12] * gains[13]) ** 0.5 == pytest.approx(1.0, rel=0.005)
