"""The bitmap, and what a crash costs without one."""

from pathlib import Path

import fake_sysfs
import pytest
from advice_looks import MD, found, only
from fake_sysfs import FakeMachine

from autotune.advice import advise as advising
from autotune.advice.advise import advise
from autotune.system.array import find_array


def without_bitmap(root: Path) -> FakeMachine:
    machine = fake_sysfs.raid6(root)
    machine.put(f"{MD}/bitmap/location", "none")
    machine.put(f"{MD}/consistency_policy", "resync")
    machine.put(f"{MD}/component_size", str(200 << 20))
    return machine


def test_a_large_array_without_a_bitmap(tmp_path: Path) -> None:
    finding = only(without_bitmap(tmp_path), "no-bitmap")
    assert finding.commands == ("mdadm --grow --bitmap=internal /dev/md0",)
    assert "autotune forecast /dev/md0" in finding.cost


def test_what_a_crash_costs_is_counted_from_what_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = without_bitmap(tmp_path)
    speeds = {f"sd{letter}": 100 << 10 for letter in "abcde"}
    monkeypatch.setattr(advising.measured, "speeds", lambda _: (speeds, ""))
    (finding,) = advise(find_array("md0", machine.root), tmp_path).findings
    # 200 GiB at 100 MiB/s.
    assert "34 min 08 s at least" in finding.cost


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("consistency_policy", "ppl"),
        ("consistency_policy", "journal"),
        ("bitmap/location", "+8"),
        ("component_size", str(90 << 20)),
        ("metadata_version", "external:/md127/0"),
    ],
)
def test_an_array_that_needs_no_bitmap(tmp_path: Path, file: str, text: str) -> None:
    machine = without_bitmap(tmp_path)
    machine.put(f"{MD}/{file}", text)
    assert found(machine) == []


@pytest.mark.parametrize(
    ("chunk_bytes", "more", "fine"),
    [
        (64 << 20, {}, False),
        (16 << 20, {}, False),
        (4 << 20, {}, True),
        (64 << 10, {"bitmap_type": "bitmap none [llbitmap]"}, False),
        (4 << 20, {"bitmap/metadata": "clustered"}, False),
        (4 << 20, {"bitmap/location": "file"}, False),
    ],
)
def test_a_bitmap_that_is_too_fine(
    tmp_path: Path, chunk_bytes: int, more: dict[str, str], fine: bool
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    for file, text in {"bitmap/chunksize": str(chunk_bytes), **more}.items():
        machine.put(f"{MD}/{file}", text)
    assert [finding.name for finding in found(machine)] == ["bitmap-chunk"] * fine


def too_fine(root: Path, **files: str) -> FakeMachine:
    machine = fake_sysfs.raid6(root)
    for file, text in {"chunksize": str(4 << 20), **files}.items():
        machine.put(f"{MD}/bitmap/{file}", text)
    return machine


def test_a_new_bitmap_keeps_what_was_set_of_the_old(tmp_path: Path) -> None:
    machine = too_fine(tmp_path / "plain", backlog="0", time_base="5")
    (command,) = only(machine, "bitmap-chunk").commands
    assert command.endswith("--bitmap=internal --bitmap-chunk=64M /dev/md0")
    machine = too_fine(tmp_path / "set", backlog="1024", time_base="7")
    (command,) = only(machine, "bitmap-chunk").commands
    assert command.endswith("--bitmap-chunk=64M --write-behind=1024 --delay=7 /dev/md0")


def test_a_member_that_is_missing_needs_the_bitmap_it_knows(tmp_path: Path) -> None:
    machine = too_fine(tmp_path)
    assert only(machine, "bitmap-chunk").live
    machine.put(f"{MD}/degraded", "1")
    finding = only(machine, "bitmap-chunk")
    assert not finding.live
    assert "--re-add" in finding.risk
