"""The command that a run suggests is that of another run like it, and works when it is copied."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fake_run import Machine
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.problem.ceilings import Ceiling
from autotune.suggested import STATE_DIR, in_folder, with_folder
from autotune.tuning.remarks import _command


@pytest.mark.parametrize(
    ("changes", "more", "words"),
    [
        ({}, "--trials 40", "autotune run md0 --workload FILE --trials 40"),
        (
            {"strategy": "recipe", "trials": 60, "time_s": 7200.0},
            "--p99-ceiling resync=690ms",
            "FILE --strategy recipe --trials 60 --time 120min --p99-ceiling resync=690ms",
        ),
        (
            {"ceilings": (Ceiling("resync", 1.25e9, None), Ceiling(None, 3.4e5, None))},
            "--time 60min",
            "--p99-ceiling resync=1250ms --p99-ceiling 340µs",
        ),
        ({"ram_budget": 128 << 20}, "--trials 40", "--ram-budget 128MiB --trials 40"),
        ({"ram_budget": 0.1, "careful": True}, "--trials 40", "--ram-budget 10% --careful"),
        ({"write_budget": 1 << 30}, "--time 60min", "--write-budget 1GiB --time"),
        ({"write_budget": 1 << 30}, "--write-budget 2048MiB", "FILE --write-budget 2048MiB"),
    ],
)
def test_the_options_that_make_it_this_run_are_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    more: str,
    words: str,
) -> None:
    asked = {"strategy": "bayes", "trials": 20, **changes}
    preparation = Machine(tmp_path, monkeypatch).preparation(**asked)
    assert words in _command(preparation, more)
    elsewhere = dataclasses.replace(preparation, state_dir=Path("/srv/my runs"))
    assert _command(elsewhere, more).endswith(f"{more} --state-dir '/srv/my runs'")


def test_commands_in_texts_are_for_the_folder_that_was_named(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["apply", "nix", "/dev/md0", "--state-dir", str(tmp_path)])
    text = "`autotune restore`, `autotune show md0`, or `cat /x`; `autotune run --state-dir /y`"
    assert in_folder(text) == text.replace("restore`", f"restore --state-dir {tmp_path}`")
    # The next command was given none.
    CliRunner().invoke(app, ["profiles"])
    assert in_folder(text) == text


def test_the_usual_folder_goes_without_saying() -> None:
    assert with_folder("autotune solve 1", STATE_DIR) == "autotune solve 1"
