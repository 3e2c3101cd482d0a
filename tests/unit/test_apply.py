"""Applying a setting, on files that stand for sysfs."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune import sysfs
from autotune.apply import apply
from autotune.array import find_array
from autotune.errors import InfeasibleError
from autotune.journal import Journal
from autotune.knobs import for_array, read_setting

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
    journal = Journal.open(tmp_path / "j", "u", "md0", [cache], tmp_path)
    setting = {"stripe_cache_size": 8192}
    if fits:
        assert apply(array, knobs, setting, journal) == setting
        return
    with pytest.raises(InfeasibleError, match="more memory"):
        apply(array, knobs, setting, journal)
    assert 256 < int(read_setting(array, knobs)["stripe_cache_size"]) < 8192
    assert left[0] > 0
