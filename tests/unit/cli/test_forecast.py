"""`history --forecasts` and what the shells are offered for a guard, without an array."""

import json
import subprocess
import sys
from pathlib import Path

from some_forecast import some_forecast

from autotune.cli import complete
from autotune.sync_forecast import stored


def history(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autotune", "history", "--forecasts", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_forecasts_are_listed(tmp_path: Path) -> None:
    assert "No forecasts yet" in history("--state-dir", tmp_path).stdout
    assert not list(tmp_path.iterdir())
    stored.keep(some_forecast(), tmp_path)
    text = history("--state-dir", tmp_path).stdout
    assert "/dev/md0" in text
    assert "154 MB/s" in text
    (one,) = json.loads(history("--state-dir", tmp_path, "--json").stdout)
    assert (one["kind"], one["uuid"]) == ("forecast", some_forecast().uuid)


def test_a_run_has_none(tmp_path: Path) -> None:
    done = history(3, "--state-dir", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Give one of these" in done.stderr


def test_shells_are_offered_policies() -> None:
    assert complete.policies("") == ["foreground", "balanced", "rebuild"]
    assert complete.policies("b") == ["balanced"]
    assert complete.promises("d") == ["date"]
