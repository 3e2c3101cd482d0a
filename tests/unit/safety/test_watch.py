"""What ends a run."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.safety import watch as watch_module
from autotune.safety.watch import Watch
from autotune.system.array import find_array


@pytest.mark.parametrize(
    ("name", "value", "ends"),
    [("queue_depth", 41, False), ("queue_depth", 200, True), ("nr_requests", 41, True)],
)
def test_a_depth_that_the_kernel_lowers_is_nobodys_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: int, ends: bool
) -> None:
    watch = Watch(find_array("md0", fake_sysfs.raid6(tmp_path).root), ())
    watch.expect({name: 128})
    monkeypatch.setattr(watch_module, "read_setting", lambda *_: {name: value})
    assert bool(watch._foreign_change()) == ends
