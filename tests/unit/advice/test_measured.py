"""When the members are read, and what counts."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.advice import measured
from autotune.system.array import find_array


def test_a_member_that_was_disturbed_once_is_not_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = [{"sda": 100, "sdb": 40}, {"sda": 80, "sdb": 90}]
    monkeypatch.setattr(measured, "member_speeds", lambda _: rounds.pop(0))
    monkeypatch.setattr(measured, "_reason", lambda _: "")
    assert measured.speeds(find_array("md0", fake_sysfs.raid6(tmp_path).root)) == (
        {"sda": 100, "sdb": 90},
        "",
    )


def test_disks_that_are_in_use_are_not_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    monkeypatch.setattr(measured.shutil, "which", lambda name: name)
    monkeypatch.setattr(measured.os, "geteuid", lambda: 0)
    monkeypatch.setattr(measured, "member_speeds", lambda _: pytest.fail("they were read"))
    busy = iter(range(0, 1 << 30, 400))
    monkeypatch.setattr(measured, "busy_ms", lambda disk, _: next(busy) if disk == "sdc" else 0)
    speeds, reason = measured.speeds(find_array("md0", machine.root))
    assert (speeds, reason) == ({}, "sdc is in use; try at a quiet time")
