"""Completion as the shells ask for it, and what it offers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import complete
from autotune.cli.main import COMPLETING
from autotune.store.database import Store


def offered(words: str) -> list[str]:
    """What bash offers for the last of these words."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    done = subprocess.run(
        [Path(sys.executable).with_name("autotune")],
        env={**os.environ, **asked, COMPLETING: "complete_bash"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_bash_is_offered_commands_and_names() -> None:
    assert offered("autotune re") == ["report", "restore", "retune"]
    assert offered("autotune run --workload ba") == ["balanced"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(shell: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("autotune")],
        env={**os.environ, COMPLETING: f"source_{shell}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"complete_{shell}" in done.stdout


def test_names_after_a_comma() -> None:
    assert complete.knobs("scheduler,read_a") == ["scheduler,read_ahead_kb"]
    assert "all" in complete.knobs("")


def test_runs_are_offered_newest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complete, "STATE_DIR", tmp_path)
    assert complete.runs("") == []
    store = Store(tmp_path)
    for _ in range(11):
        store.start_run("abc", "/dev/md0", "print", {})
    assert complete.runs("1") == ["11", "10", "1"]
    monkeypatch.setattr(complete, "STATE_DIR", tmp_path / "none")
    assert complete.runs("") == []


def test_a_file_whose_name_a_shell_would_run_is_not_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "x.json",
        "x\\$(touch mark).json",
        "x`id`.json",
        "x;id.json",
        "x y.json",
        "x\n.json",
    ):
        Path(name).touch()
    assert complete.profiles("x") == ["x.json"]
    assert complete.profiles(f"{tmp_path}/x") == [f"{tmp_path}/x.json"]
