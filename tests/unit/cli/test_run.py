"""`autotune run` of several arrays, and what it asks for."""

import json
import subprocess
import sys
from typing import Any

import pytest
import typer

from autotune.cli.run import _for_each
from autotune.errors import RefusalError, SignalledError
from autotune.measure.workload import load_workload
from autotune.tuning.preparation import Options

EACH = [Options(device, load_workload("quick")) for device in ("/dev/md0", "/dev/md1", "/dev/md2")]


def test_an_array_that_fails_does_not_stop_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    def work(options: Options) -> dict[str, Any]:
        if options.device == "/dev/md1":
            raise RefusalError("It is degraded.")
        return {"adopt": True}

    with pytest.raises(typer.Exit) as ended:
        _for_each(EACH, several=True, as_json=True, work=work)
    assert ended.value.exit_code == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == [
        {"device": "/dev/md0", "adopt": True},
        {"device": "/dev/md1", "error": "It is degraded."},
        {"device": "/dev/md2", "adopt": True},
    ]
    assert "It is degraded." in printed.err


def test_a_signal_ends_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []

    def work(options: Options) -> dict[str, Any]:
        done.append(options.device)
        if len(done) == 2:
            raise SignalledError("Stopped by SIGINT.")
        return {}

    with pytest.raises(typer.Exit) as ended:
        _for_each(EACH, several=True, as_json=True, work=work)
    assert ended.value.exit_code == 1
    assert done == ["/dev/md0", "/dev/md1"]
    assert json.loads(capsys.readouterr().out) == [
        {"device": "/dev/md0"},
        {"device": "/dev/md1", "error": "Stopped by SIGINT."},
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "No md array with redundancy runs on this machine"),
        (("/dev/md0", "--all"), "not both"),
        (("/dev/md0", "/dev/md1", "--resume"), "are for one array"),
        (("--all", "--destructive", "/dev/md0"), "are for one array"),
        (("/dev/md0", "--verbose"), "is for --dry-run"),
    ],
)
def test_what_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    command = [sys.executable, "-m", "autotune", "run", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
