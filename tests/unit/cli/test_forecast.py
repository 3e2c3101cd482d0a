"""`history --forecasts` and what the shells are offered for a guard, without an array."""

import json
import subprocess
import sys
from pathlib import Path

import fake_sysfs
import pytest
from some_forecast import some_forecast

from autotune.cli import complete
from autotune.cli import forecast as command
from autotune.sync_forecast import running, stored
from autotune.system.array import find_array


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


@pytest.mark.parametrize(
    ("action", "left_in", "seconds", "interrupted"),
    [
        ("check", {"sync_min": "0"}, 20, False),
        ("check", {"sync_min": "4096"}, 20, True),
        ("resync", {"resync_start": "none"}, 0, False),
        ("resync", {"resync_start": "4096"}, 3, True),
    ],
)
def test_a_sync_that_ends_while_it_is_watched_has_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    action: str,
    left_in: dict[str, str],
    seconds: int,
    interrupted: bool,
) -> None:
    """Be it before it was seen to move."""
    machine, md, passed = fake_sysfs.raid6(tmp_path), "sys/block/md0/md", [0.0]

    def sleep(tick_s: float) -> None:
        passed[0] += tick_s
        if passed[0] > seconds:
            machine.put("proc/mdstat", "md0 : active raid6 sda[0]\n")
            machine.put(f"{md}/sync_action", "idle")
            for name, text in left_in.items():
                machine.put(f"{md}/{name}", text)
            return
        done = 9000 + int(passed[0]) * 10
        machine.put(
            "proc/mdstat",
            f"md0 : active raid6 sda[0]\n [>..]  {action} = 90.0% ({done}/10000) finish=1min\n",
        )

    monkeypatch.setattr(running.time, "monotonic", lambda: passed[0])
    monkeypatch.setattr(running.time, "sleep", sleep)
    for as_json in (True, False):
        passed[0] = -1.0
        machine.put(f"{md}/sync_action", action)
        sleep(1.0)
        assert command._read_running(find_array("md0", tmp_path), tmp_path, as_json)
        # Not half a minute for nothing.
        assert passed[0] < 25
    document, _, text = capsys.readouterr().out.partition("}\n")
    assert json.loads(document + "}") == {
        "kind": "ended",
        "device": "/dev/md0",
        "action": action,
        "interrupted": interrupted,
    }
    how = "was interrupted" if interrupted else "has ended"
    assert text == f"The {action} of /dev/md0 {how} while it was watched.\n"


def test_shells_are_offered_policies() -> None:
    assert complete.policies("") == ["foreground", "balanced", "rebuild"]
    assert complete.policies("b") == ["balanced"]
    assert complete.promises("d") == ["deadline"]
