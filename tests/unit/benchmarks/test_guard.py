"""The benchmark of the guard goes on where it was cut."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.guard import guest, tables
from benchmarks.guard.guest import PARTS, ROWS, Known, read_rows

ARRAY: Any = SimpleNamespace(
    device="/dev/md0", level="raid5", raid_disks=4, media=SimpleNamespace(value="hdd")
)
KNOWN = Known(150.0, 20_000.0, 20e6, 80e6, 180e6)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_has_as_many_rebuilds_as_it_says(part: str) -> None:
    assert len(PARTS[part](ARRAY, KNOWN, 15)) == ROWS[part]


def test_what_is_there_is_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure_anew(*_: object) -> Known:
        raise AssertionError("the array is known")

    def guarded(_array: object, known: Known, _users: object, name: str, _: object) -> guest.Row:
        return {"name": name, "seconds": known.full_s}

    (tmp_path / "md").mkdir()
    (tmp_path / "md/component_size").write_text("3000000\n")
    array = SimpleNamespace(**vars(ARRAY), md=tmp_path / "md")
    out = tmp_path / "rows.jsonl"
    p99s = {"quiet_ms": 20.0, "slow_ms": 80.0, "full_ms": 180.0}
    first = {"name": "foreground", "full_s": 150.0, **p99s}
    out.write_text(json.dumps(first) + "\n")
    monkeypatch.setattr(guest, "find_array", lambda _: array)
    monkeypatch.setattr(guest, "get_known", measure_anew)
    monkeypatch.setattr(guest, "guarded", guarded)
    words = ["guest", "policies", "--iops", "15", "--commit", "abc", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", words)
    guest.main()
    rows = read_rows(out)
    assert [row["name"] for row in rows] == ["foreground", "balanced", "rebuild"]
    assert rows[1] == {
        "array": "raid5-4hdd",
        "commit": "abc",
        "name": "balanced",
        "seconds": 150.0,
    }


def test_a_fixed_limit_is_told_beside_the_guard_of_its_repetition() -> None:
    rows = [{"seconds": 100.0, "p99_ms": 150.0}, {"seconds": 200.0, "p99_ms": 150.0}]
    guard = [{"seconds": 50.0, "p99_ms": 100.0}, {"seconds": 100.0, "p99_ms": 150.0}]
    assert tables.beside(rows, guard, "seconds") == "2.00 (2.00–2.00)"
    ratio, interval = tables.beside(rows, guard, "p99_ms").split()
    assert ratio == "1.22"
    assert interval.startswith("(0.")
    assert tables.beside(rows[:1], guard, "p99_ms") == "1.50"
