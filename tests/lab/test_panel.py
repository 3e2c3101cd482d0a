"""One array of the panel, in less time than the panel gives it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.panel.entries import result_path

pytestmark = [pytest.mark.lab, pytest.mark.quiet, pytest.mark.slow]

ARRAY, TIME = "raid1-3ssd-raw", "6min"


def test_a_sample_of_the_panel_runs_is_judged_by_fio_and_is_not_run_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.panel", "--array", ARRAY, "--seeds", "1"]
    command += ["--time", TIME, "--results", str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1500)
    print(done.stdout)
    path = result_path(tmp_path, ARRAY, 0, TIME)
    result = json.loads(path.read_text())
    assert result["status"] == 0, result["said"]
    assert result["command"].startswith("autotune run /dev/md0 --json")
    assert result["answer"]["searched"] > 0
    assert "not the default" in done.stdout
    if result["answer"]["adopt"]:
        assert result["judged"]["kept"]["gain"]["ratio"] > 1
    before = path.stat().st_mtime_ns
    again = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert path.stat().st_mtime_ns == before
    assert again.stdout == done.stdout
