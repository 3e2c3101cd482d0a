"""Forecasts in their file."""

import dataclasses
import json
from pathlib import Path

import fake_sysfs
import pytest
from some_forecast import some_forecast

from autotune.errors import AutotuneError
from autotune.preflight.environment import place
from autotune.sync_forecast import stored
from autotune.sync_forecast.model import Forecast
from autotune.system.array import Array, find_array


@pytest.fixture
def array(tmp_path: Path) -> Array:
    fake_sysfs.raid6(tmp_path / "machine")
    return find_array("md0", tmp_path / "machine")


def of(array: Array, made_s: float = 1.0) -> Forecast:
    return dataclasses.replace(
        some_forecast(),
        uuid=array.uuid,
        raid_disks=array.raid_disks,
        member_kib=130_048,
        made_s=made_s,
    )


def test_the_newest_of_the_same_members_counts(tmp_path: Path, array: Array) -> None:
    assert stored.newest(array, tmp_path) is None
    for made_s in (1.0, 2.0):
        stored.keep(of(array, made_s), tmp_path)
    stored.keep(dataclasses.replace(of(array, 3.0), member_kib=1), tmp_path)
    assert stored.newest(array, tmp_path) == dataclasses.replace(of(array, 2.0), **place())
    assert [each.made_s for each in stored.every(tmp_path)] == [3.0, 2.0, 1.0]


def test_old_ones_are_forgotten(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "KEPT", 3)
    for made_s in range(5):
        stored.keep(of(array, float(made_s)), tmp_path)
    assert [each.made_s for each in stored.every(tmp_path)] == [4.0, 3.0, 2.0]


@pytest.mark.parametrize("text", ["", "{}", "[1]", '[{"device": 1}]', "[" * 100_000, "\xff"])
def test_what_is_damaged_counts_as_not_there(tmp_path: Path, array: Array, text: str) -> None:
    stored.keep(of(array), tmp_path)
    (tmp_path / "forecasts" / f"{array.uuid}.json").write_text(text, encoding="latin-1")
    assert stored.newest(array, tmp_path) is None
    stored.keep(of(array), tmp_path)
    assert stored.newest(array, tmp_path) is not None


@pytest.mark.parametrize(
    "change",
    [
        {"platter": {"places": [0.0, 0.0], "kib_s": [1.0, 1.0]}},
        {"platter": {"places": [], "kib_s": []}},
        {"platter": {"places": [0.0], "kib_s": [0.0]}},
        {"platter": {"places": [0.0], "kib_s": [float("inf")]}},
        {"made_s": 1e300},
        {"member_kib": 0},
        {"users_share": None},
        {"rate_spread": -1},
        {"level": 5},
        {"stopped_ns": 0},
        {"points": [{"kib_s": 0, "p50": None, "p99": {"value": 0, "spread": 0}, "samples": 9}]},
        {"points": [{"kib_s": 0, "p50": {"value": 1, "spread": None}, "p99": None, "samples": 9}]},
    ],
)
def test_numbers_that_no_array_has_count_as_damaged(
    tmp_path: Path, array: Array, change: dict[str, object]
) -> None:
    stored.keep(of(array), tmp_path)
    path = tmp_path / "forecasts" / f"{array.uuid}.json"
    path.write_text(json.dumps([{**of(array).document(), **change}]))
    assert stored.every(tmp_path) == []


def test_what_one_entry_holds_costs_no_other_and_is_kept(tmp_path: Path, array: Array) -> None:
    """It may be of a newer version, which reads it again."""
    for made_s in (1.0, 2.0, 3.0):
        stored.keep(of(array, made_s), tmp_path)
    path = tmp_path / "forecasts" / f"{array.uuid}.json"
    entries = json.loads(path.read_text())
    entries[1] = {**entries[1], "of_a_newer_version": 1}
    path.write_text(json.dumps(entries))
    assert [each.made_s for each in stored.every(tmp_path)] == [3.0, 1.0]
    stored.keep(of(array, 4.0), tmp_path)
    assert [each.made_s for each in stored.every(tmp_path)] == [4.0, 3.0, 1.0]
    assert json.loads(path.read_text())[:3] == entries


def test_a_damaged_file_is_put_aside(tmp_path: Path, array: Array) -> None:
    stored.keep(of(array), tmp_path)
    path = tmp_path / "forecasts" / f"{array.uuid}.json"
    path.write_text("[{")
    aside = stored.keep(of(array), tmp_path)
    assert aside is not None
    assert aside.read_text() == "[{"
    assert stored.keep(of(array), tmp_path) is None


def test_what_cannot_be_read_is_not_written_over(tmp_path: Path, array: Array) -> None:
    path = tmp_path / "forecasts" / f"{array.uuid}.json"
    path.mkdir(parents=True)
    with pytest.raises(AutotuneError, match="cannot be stored"):
        stored.keep(of(array), tmp_path)
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path, array: Array) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AutotuneError, match=r"cannot be stored in .* choose another folder"):
        stored.keep(of(array), tmp_path / "file")
