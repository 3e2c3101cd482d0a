"""Commands that texts suggest work as they stand."""

import shutil

import pytest

from autotune.suggested import set_by_hand


@pytest.mark.parametrize(
    ("sudo", "command"),
    [
        ("/usr/bin/sudo", "echo max | sudo tee /sys/block/md0/md/sync_max"),
        # As in a container, and on a Debian whose root has a password.
        (None, "echo max | tee /sys/block/md0/md/sync_max"),
    ],
)
def test_a_value_is_set_by_whoever_may(
    monkeypatch: pytest.MonkeyPatch, sudo: str | None, command: str
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: sudo)
    assert set_by_hand("/sys/block/md0/md/sync_max", "max") == command
