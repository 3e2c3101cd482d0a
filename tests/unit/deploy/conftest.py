"""An array that profiles can be put in force on, as far as files go."""

import os
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import start

from autotune.deploy import persist
from autotune.system import sysfs
from autotune.system.array import Array, find_array


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores as the kernel does them, and nothing of the machine's own."""
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    for name in ("check", "tell_udev"):
        monkeypatch.setattr(persist, name, lambda *_: None)


@pytest.fixture
def array(tmp_path: Path, quick: None) -> Array:
    fake_sysfs.raid6(tmp_path)
    start(tmp_path)
    return find_array("md0", tmp_path)
