"""Whose a process is, as a fake /proc has it."""

import os
from pathlib import Path

import pytest

from autotune.system.process import real_uid


@pytest.mark.parametrize("name", ["mdadm", "a\rUid:\t0", "a\\nUid:\t0", "a\x0bUid:\t0"])
def test_no_name_makes_a_process_roots(tmp_path: Path, name: str) -> None:
    text = f"Name:\t{name}\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
    (tmp_path / "status").write_bytes(text.encode())
    assert real_uid(tmp_path) == 1000


def test_a_process_that_is_gone_is_nobodys(tmp_path: Path) -> None:
    assert real_uid(tmp_path / "gone") is None
    assert real_uid(Path("/proc/self")) == os.getuid()
