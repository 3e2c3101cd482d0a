"""Whether a profile fits an array, and what its values become there."""

from pathlib import Path

import fake_sysfs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from some_profile import profile

from autotune.deploy.rescale import kernel_version, plan, plan_values
from autotune.errors import UsageError
from autotune.knobs import by_name, consistent, ram_bytes
from autotune.system.array import Array, find_array
from autotune.system.memory import budget_bytes

GIB = 1 << 30


def array_of(root: Path, level: str = "raid6", disks: int = 5, memory_gib: int = 8) -> Array:
    machine = fake_sysfs.raid6(root, level, disks)
    kib = memory_gib * GIB // 1024
    machine.put("proc/meminfo", f"MemTotal: {kib} kB\nMemAvailable: {kib} kB")
    return find_array("md0", root)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Array:
    return array_of(tmp_path_factory.mktemp("small"), disks=4, memory_gib=1)


def test_on_an_array_of_its_class_a_profile_stays_as_it_is(tmp_path: Path) -> None:
    planned = plan(profile(), array_of(tmp_path), GIB, None)
    assert not planned.refusals
    assert not planned.notes
    assert planned.setting == profile().knobs
    assert not any(change.why for change in planned.changes)


LARGE = {
    "stripe_cache_size": 32768,
    "read_ahead_kb": 20480,
    "sync_speed_min": 50000,
    "sync_speed_max": 500000,
    "scheduler": "mq-deadline",
}
"""Of 12 disks with chunks of 512 KiB and 64 GiB of memory: 5 % of that pays for 32768 stripes."""


@pytest.mark.parametrize("level", ["raid5", "raid6"])
def test_a_profile_of_a_large_machine_fits_the_budget_of_a_small_one(
    tmp_path: Path, level: str
) -> None:
    array = array_of(tmp_path, level, disks=4, memory_gib=1)
    budget = budget_bytes(0.05, tmp_path)
    there = profile(LARGE, level=level, members=12, chunk_kib=512)
    planned = plan(there, array, budget, None)
    assert not planned.refusals
    setting = planned.setting
    assert ram_bytes(array, setting) <= budget == GIB // 20
    assert int(setting["stripe_cache_size"]) in by_name("stripe_cache_size").choices(array, budget)
    # As much as there is is used: twice as many stripes would be too many.
    doubled = {**setting, "stripe_cache_size": 2 * int(setting["stripe_cache_size"])}
    assert ram_bytes(array, doubled) > budget
    why = {change.knob: change.why for change in planned.changes}
    assert "the budget leaves" in why["stripe_cache_size"]
    assert any("12 members; here are 4" in note for note in planned.notes)


def test_what_does_not_fit_the_budget_at_all_is_refused_in_one_sentence(tmp_path: Path) -> None:
    array = array_of(tmp_path, disks=4)
    (refusal,) = plan(profile({"stripe_cache_size": 4096}), array, 100_000, None).refusals
    assert "no smaller value fits" in refusal
    assert refusal.count(". ") == 0


def test_the_cache_gets_what_the_others_leave_of_the_budget(tmp_path: Path) -> None:
    array = array_of(tmp_path)
    knobs = {"stripe_cache_size": 2048, "read_ahead_kb": 16384}
    budget = ram_bytes(array, knobs) - 1
    setting = plan(profile(knobs), array, budget, None).setting
    assert setting["read_ahead_kb"] == 16384
    assert setting["stripe_cache_size"] == 1536


def test_stripes_never_become_more_than_were_proven(tmp_path: Path) -> None:
    array = array_of(tmp_path, disks=8)
    assert plan(profile(members=3), array, GIB, None).setting["stripe_cache_size"] == 1024


@pytest.mark.parametrize(
    ("members", "chunk_kib", "there", "here"),
    [(5, 64, 384, 384), (5, 128, 768, 384), (12, 512, 5120, 192), (4, 64, 0, 0), (12, 64, 4, 128)],
)
def test_read_ahead_goes_with_the_width_of_a_stripe(
    tmp_path: Path, members: int, chunk_kib: int, there: int, here: int
) -> None:
    """Here a stripe holds 3 × 64 KiB."""
    moved = profile({"read_ahead_kb": there}, members=members, chunk_kib=chunk_kib)
    assert plan(moved, array_of(tmp_path), GIB, None).setting == {"read_ahead_kb": here}


def test_a_mirrors_read_ahead_stays(tmp_path: Path) -> None:
    array = array_of(tmp_path, "raid1", disks=2)
    moved = profile({"read_ahead_kb": 1024}, level="raid1", members=3, chunk_kib=0)
    assert plan(moved, array, GIB, None).setting == {"read_ahead_kb": 1024}


SPEEDS: dict[str, int | str] = {"sync_speed_min": 70000, "sync_speed_max": 200000}


@pytest.mark.parametrize(
    ("there", "here", "low", "high"),
    [
        (150_000, 160_000, 70000, 200000),
        (150_000, 75_000, 30000, 100000),
        (75_000, 150_000, 100000, 300000),
        (150_000, 1, 1000, 1000),
        (None, 160_000, 70000, 200000),
        (150_000, None, 70000, 200000),
    ],
)
def test_sync_speeds_go_with_the_members_own_rate(
    tmp_path: Path, there: int | None, here: int | None, low: int, high: int
) -> None:
    moved = profile(SPEEDS, member_kib_s=there)
    planned = plan(moved, array_of(tmp_path), GIB, here)
    assert planned.setting == {"sync_speed_min": low, "sync_speed_max": high}
    assert any("not known" in note for note in planned.notes) == (None in (there, here))


@pytest.mark.parametrize(
    ("proven_on", "words"),
    [
        ({"level": "raid5"}, "proven on raid5, and /dev/md0 is raid6"),
        ({"media": "nvme"}, "proven on NVMe disks, and /dev/md0 is of hard disks"),
        ({"kernel": "6.16.1"}, "since 6.16"),
    ],
)
def test_another_class_is_refused_in_one_sentence(
    tmp_path: Path, proven_on: dict[str, str], words: str
) -> None:
    planned = plan(profile(SPEEDS, **proven_on), array_of(tmp_path), GIB, None)
    (refusal,) = planned.refusals
    assert words in refusal
    assert refusal.endswith(".")
    assert not planned.setting


def test_a_kernel_of_another_throttle_does_not_matter_without_sync_speeds(tmp_path: Path) -> None:
    planned = plan(profile(kernel="7.0"), array_of(tmp_path), GIB, None)
    assert not planned.refusals
    assert planned.notes == ("The profile was proven on Linux 7.0; this is 6.1.176.",)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"sync_io_depth": 64}, "has no sync_io_depth"),
        ({"stripe_cache_size": 32769}, "17 to 32768"),
        ({"stripe_cache_size": "many"}, "whole number"),
        ({"sync_speed_min": 9000, "sync_speed_max": 8000}, "above sync_speed_max"),
        ({"scheduler": "bfq,none"}, "Nothing of it can be set"),
    ],
)
def test_values_that_this_array_does_not_take_are_refused(
    tmp_path: Path, knobs: dict[str, int | str], words: str
) -> None:
    (refusal,) = plan(profile(knobs), array_of(tmp_path), GIB, None).refusals
    assert words in refusal


def test_a_knob_that_no_array_has_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='no setting "turbo"'):
        plan(profile({"turbo": 1}), array_of(tmp_path), GIB, None)


def test_a_scheduler_that_is_not_offered_is_left_out(tmp_path: Path) -> None:
    knobs: dict[str, int | str] = {"scheduler": "cfq", "read_ahead_kb": 512}
    planned = plan(profile(knobs), array_of(tmp_path), GIB, None)
    assert planned.setting == {"read_ahead_kb": 512}
    assert "not cfq" in planned.changes[0].why


def test_plain_values_are_cut_to_the_budget_too(tmp_path: Path) -> None:
    array = array_of(tmp_path)
    setting = plan_values({"stripe_cache_size": 32768}, array, 64 << 20).setting
    assert 256 < int(setting["stripe_cache_size"]) < 32768
    assert ram_bytes(array, setting) <= 64 << 20


@pytest.mark.parametrize(
    ("text", "version"),
    [("6.1.176-foo", (6, 1)), ("6.16", (6, 16)), ("x", None), ("", None), ("6.99999999", None)],
)
def test_a_kernels_version_is_read_or_unknown(text: str, version: tuple[int, int] | None) -> None:
    assert kernel_version(text) == version


numbers = st.integers(1, 1 << 20)


@settings(max_examples=200, derandomize=True, database=None, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "stripe_cache_size": numbers,
            "read_ahead_kb": numbers,
            "sync_speed_min": numbers,
            "sync_speed_max": numbers,
            "preread_bypass_threshold": numbers,
            "nr_requests": st.integers(1, 5000),
            "scheduler": st.sampled_from(["none", "bfq", "cfq", "none,bfq"]),
        },
    ),
    st.fixed_dictionaries(
        {"members": st.integers(1, 4096), "chunk_kib": st.integers(0, 1 << 20)},
        optional={"member_kib_s": numbers},
    ),
    st.integers(0, 1 << 31),
    st.none() | numbers,
)
def test_whatever_a_plan_sets_is_valid_goes_together_and_is_within_the_budget(
    small: Array,
    knobs: dict[str, int | str],
    proven_on: dict[str, int],
    budget: int,
    rate: int | None,
) -> None:
    planned = plan(profile(knobs, **proven_on), small, budget, rate)
    assert all(text.endswith(".") and text.isprintable() for text in planned.refusals)
    if planned.refusals:
        return
    assert ram_bytes(small, planned.setting) <= budget
    assert consistent(small, planned.setting) is None
    for name, value in planned.setting.items():
        assert by_name(name).valid(small, value) is None
        if name == "stripe_cache_size":
            assert int(value) <= int(knobs[name])
