"""What root would run by a command of several words."""

import os
from pathlib import Path

import pytest

from autotune.system import ownership


@pytest.mark.skipif(os.geteuid() != 0, reason="root gives a folder away")
def test_a_folder_of_somebody_elses_is_not_run_by_root(tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    words = ("/usr/bin/env", str(hooks))
    assert ownership.refuse_words(words) is None
    os.chown(hooks, 1000, 1000)
    assert "belongs to" in str(ownership.refuse_words(words))
