"""When a sync that is under way will end."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.sync_forecast.platter import Platter, assumed
from autotune.sync_forecast.running import Look, Running, Watched, judge
from autotune.system.array import Array, find_array

SIZE_KIB = 10_000_000


def looks(start: float, kib_s: float, count: int = 30) -> list[Look]:
    """A sync from a place on that goes by turns a little faster and slower."""
    done, seen = start * SIZE_KIB, []
    for n in range(count):
        seen.append((float(n), int(done - start * SIZE_KIB), done / SIZE_KIB, SIZE_KIB))
        done += kib_s * (1.05 if n % 2 else 0.95)
    return seen


def array(folder: Path, limit: str = "200000 (system)", bitmap: bool = False) -> Array:
    machine = fake_sysfs.raid6(folder)
    machine.put("sys/block/md0/md/sync_speed_max", limit)
    machine.put("sys/block/md0/md/sync_action", "recover")
    machine.put("sys/block/md0/md/bitmap/location", "+8" if bitmap else "none")
    return find_array("md0", folder)


def judged(array: Array, seen: list[Look], known: Platter | None) -> Running:
    found = judge(array, Watched("recover", seen), known)
    assert found is not None
    assert found.low_s <= found.left_s <= found.high_s
    return found


def test_a_hard_disk_takes_longer_than_its_present_speed_says(tmp_path: Path) -> None:
    found = judged(array(tmp_path), looks(0.0, 50_000), None)
    left_kib = (1 - found.share) * SIZE_KIB
    assert found.left_s > 1.2 * left_kib / found.kib_s
    # It may be a partition that is as fast at its end.
    assert found.low_s < left_kib / found.kib_s


def test_near_its_end_the_curve_matters_little(tmp_path: Path) -> None:
    found = judged(array(tmp_path), looks(0.9, 50_000, 15), None)
    assert found.left_s == pytest.approx((1 - found.share) * SIZE_KIB / found.kib_s, rel=0.1)


def test_what_a_limit_holds_goes_on_as_it_goes(tmp_path: Path) -> None:
    found = judged(array(tmp_path, "10000 (local)"), looks(0.1, 10_000), None)
    assert found.left_s == pytest.approx((1 - found.share) * SIZE_KIB / found.kib_s, rel=0.01)
    # The disks may become slower than the limit.
    assert found.high_s > 1.2 * found.left_s


def test_a_measured_curve_is_surer_than_a_supposed_one(tmp_path: Path) -> None:
    one = array(tmp_path, bitmap=True)
    known = judged(one, looks(0.1, 50_000), assumed(60_000))
    unknown = judged(one, looks(0.1, 50_000), None)
    assert known.high_s / known.low_s < unknown.high_s / unknown.low_s
    assert known.skips


def test_a_sync_that_stands_still_has_no_end(tmp_path: Path) -> None:
    one = array(tmp_path)
    assert judge(one, Watched("recover", looks(0.1, 0)), None) is None
    assert judge(one, Watched("recover", []), None) is None


def test_what_a_guard_holds_goes_on_as_it_goes_whether_it_is_open_or_shut(tmp_path: Path) -> None:
    seen = looks(0.1, 20_000)
    found = judge(array(tmp_path), Watched("recover", seen, guarded=True), None)
    assert found is not None
    assert found.left_s == pytest.approx((1 - found.share) * SIZE_KIB / found.kib_s, rel=0.01)
