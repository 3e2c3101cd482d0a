"""Whose a process is, as a fake /proc has it."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from autotune.system.process import SYS_ADMIN, has_right, real_uid


@pytest.mark.parametrize("name", ["mdadm", "a\rUid:\t0", "a\\nUid:\t0", "a\x0bUid:\t0"])
def test_no_name_makes_a_process_roots(tmp_path: Path, name: str) -> None:
    text = f"Name:\t{name}\nUmask:\t0022\nUid:\t1000\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
    (tmp_path / "status").write_bytes(text.encode())
    assert real_uid(tmp_path) == 1000


def test_a_process_that_is_gone_is_nobodys(tmp_path: Path) -> None:
    assert real_uid(tmp_path / "gone") is None
    assert real_uid(Path("/proc/self")) == os.getuid()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has the right")
def test_who_has_a_user_namespace_of_its_own_has_no_rights_outside() -> None:
    for words in ((), ("unshare", "--user", "--map-root-user")):
        with subprocess.Popen([*words, "sleep", "60"], stdin=subprocess.DEVNULL) as program:
            process = Path(f"/proc/{program.pid}")
            try:
                while (process / "comm").read_text() != "sleep\n":
                    time.sleep(0.01)
                assert has_right(process, SYS_ADMIN) != bool(words)
            finally:
                program.kill()
