"""Applying a setting, on files that stand for sysfs."""

from pathlib import Path

import fake_sysfs
import pytest
from some_profile import profile

from autotune.deploy.apply import known_here, with_those_in_force
from autotune.deploy.persisted import profile_path
from autotune.errors import InfeasibleError
from autotune.knobs import for_array, read_setting
from autotune.knobs.profile_file import load_profile, save_profile
from autotune.safety.apply import apply
from autotune.safety.new_journal import new_journal
from autotune.system import sysfs
from autotune.system.array import find_array

MIB = 1 << 20


@pytest.mark.parametrize(("heavier", "fits"), [(1, True), (4, False)])
def test_growing_stops_when_the_stripes_take_more_memory_than_was_thought(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heavier: int, fits: bool
) -> None:
    """A store takes `heavier` times of memory what a stripe should."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/sys/kernel/random/boot_id", "boot")
    array = find_array("md0", tmp_path)
    knobs = [knob for knob in for_array(array) if knob.name == "stripe_cache_size"]
    (cache,) = knobs[0].paths(array)
    stripe = knobs[0].ram_bytes(array, 1)
    left = [500 * MIB]

    def memory() -> None:
        total = 1000 * MIB // 1024
        machine.put("proc/meminfo", f"MemTotal: {total} kB\nMemAvailable: {left[0] // 1024} kB")

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        left[0] -= heavier * stripe * (int(text) - int(sysfs.value(path)))
        fake_sysfs.write(path, text)
        memory()

    memory()
    monkeypatch.setattr(sysfs, "write", write)
    journal = new_journal(tmp_path / "j", "u", "md0", [cache], tmp_path)
    setting = {"stripe_cache_size": 8192}
    if fits:
        assert apply(array, knobs, setting, journal) == setting
        return
    with pytest.raises(InfeasibleError, match="more memory"):
        apply(array, knobs, setting, journal)
    assert 256 < int(read_setting(array, knobs)["stripe_cache_size"]) < 8192
    assert left[0] > 0


def test_a_profile_is_kept_with_the_values_that_this_array_had(tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path).put("proc/sys/kernel/random/boot_id", "boot")
    array = find_array("md0", tmp_path)
    theirs = load_profile(Path(__file__).parents[3] / "examples/profile.json")
    now = dict.fromkeys(theirs.knobs, 7)
    first = known_here(theirs, array, now, tmp_path)
    assert (first.before, first.knobs) == (now, theirs.knobs)
    # Over another one in force, what that one found, not what it set.
    save_profile(first, profile_path(array.uuid, tmp_path))
    assert known_here(theirs, array, dict.fromkeys(theirs.knobs, 9), tmp_path).before == now
    profile_path(array.uuid, tmp_path).write_text("damaged")
    assert known_here(theirs, array, now, tmp_path).before == now


def test_a_runs_profile_has_what_was_in_force_while_it_was_proven(tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path).put("proc/sys/kernel/random/boot_id", "boot")
    array = find_array("md0", tmp_path)
    found = load_profile(Path(__file__).parents[3] / "examples/profile.json")
    first = found.model_copy(
        update={"knobs": {"sync_speed_max": 9000}, "before": {"sync_speed_max": 8000}}
    )
    save_profile(first, profile_path(array.uuid, tmp_path))
    second = found.model_copy(
        update={"knobs": {"stripe_cache_size": 512}, "before": {"stripe_cache_size": 256}}
    )
    winner = {"stripe_cache_size": 512, "sync_speed_max": 9000}
    baseline = {"stripe_cache_size": 256, "sync_speed_max": 9000}
    whole = with_those_in_force(second, array, winner, baseline, tmp_path)
    assert whole.knobs == winner
    assert whole.before == {"stripe_cache_size": 256, "sync_speed_max": 8000}
    # Not a knob of this run: it is as it reads.
    del winner["sync_speed_max"], baseline["sync_speed_max"]
    whole = with_those_in_force(second, array, winner, baseline, tmp_path)
    assert whole.knobs["sync_speed_max"] == read_setting(array, for_array(array))["sync_speed_max"]


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_only_a_replaced_profile_has_set_is_not_forgotten(
    tmp_path: Path, by_hand: bool
) -> None:
    """Else it would stay for good, and count as the original of the next one that sets it."""
    fake_sysfs.raid6(tmp_path).put("proc/sys/kernel/random/boot_id", "boot")
    array = find_array("md0", tmp_path)
    replaced = profile({"stripe_cache_size": 512, "read_ahead_kb": 1024})
    before = {"stripe_cache_size": 256, "read_ahead_kb": 384}
    save_profile(replaced.model_copy(update={"before": before}), profile_path(array.uuid, tmp_path))
    (array.block / "queue/read_ahead_kb").write_text("4096\n" if by_hand else "1024\n")
    found = known_here(
        profile({"stripe_cache_size": 768}), array, {"stripe_cache_size": 512}, tmp_path
    )
    kept = {} if by_hand else {"read_ahead_kb": 384}
    assert found.before == {"stripe_cache_size": 256, **kept}
