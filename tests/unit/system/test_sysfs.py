"""What is read from sysfs to be put back."""

from pathlib import Path

from autotune.system import sysfs


def test_a_speed_that_reads_as_negative_is_put_back_as_it_was_set(tmp_path: Path) -> None:
    speed = tmp_path / "sync_speed_max"
    speed.write_text("-1 (local)\n")
    assert sysfs.original(speed) == "4294967295"
    other = tmp_path / "other"
    other.write_text("-1\n")
    assert sysfs.original(other) == "-1"
