"""The panel of arrays that the whole command is judged on: what it is made of, and its sums."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from autotune.errors import UsageError
from autotune.problem.figure import Figure
from autotune.tuning.preparation import Preparation
from benchmarks.panel import best
from benchmarks.panel.entries import Entry, entries, result_path
from benchmarks.panel.guest import judged
from benchmarks.panel.judge import broken, gained
from benchmarks.panel.table import line, row, totals


def test_the_arrays_differ_in_what_the_panel_is_for() -> None:
    found = entries()
    labs = {entry.scenario: entry.lab for entry in found.values()}
    arrays = [lab.arrays[0] for lab in labs.values()]
    assert len(labs) >= 10
    assert {array.level for array in arrays} == {"raid1", "raid5", "raid6", "raid10"}
    members = [array.members for array in arrays]
    assert (min(members), max(members)) == (2, 8)
    assert len({array.chunk_kib for array in arrays}) >= 4
    assert {lab.each_disk[0].kind for lab in labs.values()} >= {"hdd", "ssd"}
    assert {lab.filesystem is None for lab in labs.values()} == {True, False}
    assert sum(entry.held_out for entry in found.values()) == 4
    assert sum(e.begins_at_best and not e.settings for e in found.values()) == 3
    assert any(set(entry.settings) == {"read_ahead_kb"} for entry in found.values())


def test_a_sample_is_no_result_of_the_default_time(tmp_path: Path) -> None:
    assert result_path(tmp_path, "x", 1, "6min") != result_path(tmp_path, "x", 1, None)


def test_an_array_that_begins_at_an_unknown_best_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.panel.entries.HERE", tmp_path)
    entry = Entry("tuned", "plain", begins_at_best=True, settings={"read_ahead_kb": 128})
    with pytest.raises(UsageError, match="--best"):
        _ = entry.start
    (tmp_path / "best").mkdir()
    known = {"best": {"read_ahead_kb": 4096, "scheduler": "none"}}
    (tmp_path / "best/plain.json").write_text(json.dumps(known))
    assert entry.start == {"read_ahead_kb": 128, "scheduler": "none"}


@pytest.mark.parametrize("best", [None, {"read_ahead_kb": 512}])
def test_a_run_that_keeps_nothing_where_nothing_better_is_known_needs_no_judge(
    best: dict[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Entry, "best", best)
    start = {"read_ahead_kb": 512}
    found = judged(None, entries()["raid6-6hdd-raw"], start, start)  # type: ignore[arg-type]
    assert found["best_known"] == (best is not None)
    assert found["kept"] == found["best"] == {"gain": None, "broken": []}


def side(rate: float, p99: float, seed: int) -> list[dict[str, float]]:
    rng = random.Random(seed)
    return [
        {"read.throughput": rate * rng.gauss(1, 0.02), "resync.p99": p99 * rng.gauss(1, 0.05)}
        for _ in range(4)
    ]


def test_fio_finds_a_gain_and_a_broken_ceiling_and_no_difference_where_none_is() -> None:
    start = side(100, 10, 0)
    better = gained(start, side(150, 10, 1))
    assert better.low > 1.3
    assert better.high < 1.7
    same = gained(start, side(100, 10, 2))
    assert same.low < 1 < same.high
    assert broken(start, side(150, 10, 3)) == []
    assert broken(start, side(150, 20, 4)) == ["resync.p99"]


def result(kept: float, claimed: float | None, possible: float) -> dict[str, Any]:
    def about(ratio: float | None) -> dict[str, float] | None:
        return ratio and {"ratio": ratio, "low": ratio / 1.05, "high": ratio * 1.05}  # type: ignore[return-value]

    judged = {"best_known": True}
    return {
        **{"commit": "abc", "seed": 0, "time": None, "status": 0, "over_s": 3.0, "trial_s": 600.0},
        "answer": {"adopt": claimed is not None, "gain": about(claimed), "seconds": 700.0}
        | {"searched": 9},
        "judged": judged
        | {"kept": {"gain": about(kept) if claimed else None, "broken": []}}
        | {"best": {"gain": about(possible), "broken": []}},
    }


def test_the_share_is_of_what_fio_measured_not_of_what_was_claimed() -> None:
    entry = entries()["raid1-3ssd-raw"]
    half = row(entry, result(kept=math.sqrt(1.5), claimed=1.5, possible=1.5))
    assert half.share == pytest.approx(0.5)
    assert not half.agrees
    assert row(entry, result(1.5, 1.5, 1.5)).agrees
    assert row(entry, result(1.0, None, 1.5)).share == 0.0
    assert row(entry, result(1.0, None, 1.02)).share is None
    assert "NO" in line(half)


def test_a_claim_where_nothing_is_to_be_gained_counts_against_the_panel() -> None:
    tuned = entries()["raid1-3ssd-raw-tuned"]
    rows = [row(tuned, result(1.0, None, 1.0)), row(tuned, result(1.1, 1.1, 1.0))]
    assert any("where nothing is: 1 of 2" in text for text in totals(rows))


def test_a_run_that_failed_is_told_and_is_no_result() -> None:
    entry = entries()["raid1-3ssd-raw"]
    failed = {
        "commit": "abc",
        "seed": 0,
        "time": None,
        "status": 1,
        "said": "It is degraded.",
        "seconds": 2.0,
    }
    each = row(entry, failed)
    assert "It is degraded." in line(each)
    assert totals([each])[0].startswith("1 runs, 1 failed")


def test_the_long_search_passes_over_what_gains_more_but_breaks_its_ceiling() -> None:
    figures = (
        Figure("resync.throughput", "resync", "throughput", 1.0),
        Figure("resync.p99", "resync", "latency"),
    )
    preparation: Preparation = type("Made", (), {"figures": figures})()
    shown = {256: (100.0, 10.0), 512: (120.0, 10.5), 4096: (200.0, 30.0)}
    proofs = [
        {
            "setting": {"stripe_cache_size": size},
            "figures": {"resync.throughput": rate, "resync.p99": p99},
        }
        for size, (rate, p99) in shown.items()
    ]
    leaders = [proof["setting"] for proof in proofs]
    assert best.proven(preparation, leaders, proofs) == (  # type: ignore[arg-type]
        {"stripe_cache_size": 512},
        pytest.approx(1.2),
    )
