"""Runs in the store that are of a newer version, or damaged: each command says so in a sentence."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from stored_reports import from_the_lab
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.errors import AutotuneError
from autotune.store.opening import FILE_NAME

REPORT = ("report", "1", "--format", "text")


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return from_the_lab(tmp_path)


def alter(state: Path, table: str, column: str, changes: dict[str, Any]) -> None:
    """Change entries of the newest row's JSON; "a/b" is the entry b of a."""
    with closing(sqlite3.connect(state / FILE_NAME)) as connection, connection:
        row = f"FROM {table} WHERE {column} IS NOT NULL ORDER BY id DESC LIMIT 1"
        number, text = connection.execute(f"SELECT id, {column} {row}").fetchone()
        document = json.loads(text)
        for path, value in changes.items():
            *above, last = path.split("/")
            entry = document
            for name in above:
                entry = entry[name]
            entry[last] = value
        connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE id = ?", (json.dumps(document), number)
        )


def said(state: Path, *words: str) -> str:
    """The sentence with which a command ends; empty if it comes to its end."""
    error = CliRunner().invoke(app, [*words, "--state-dir", str(state)]).exception
    if error is None:
        return ""
    assert isinstance(error, AutotuneError), repr(error)
    assert error.exit_code == 1
    text = str(error)
    assert text.isprintable()
    assert text.endswith(".")
    return text


@pytest.mark.parametrize(
    "words", [REPORT, ("solve", "1"), ("export", "1"), ("diff", "1", "1")], ids=" ".join
)
def test_a_profile_of_a_newer_version_says_so(state: Path, words: tuple[str, ...]) -> None:
    alter(state, "runs", "profile", {"schema_version": 2, "more": 1})
    assert 'The profile "run 1" is of another schema version' in said(state, *words)


def test_what_needs_no_profile_is_shown_all_the_same(state: Path) -> None:
    alter(state, "runs", "profile", {"schema_version": 2})
    for words in (("history",), ("history", "1"), ("history", "1", "--json")):
        assert said(state, *words) == ""


@pytest.mark.parametrize(
    ("words", "column", "changes"),
    [
        (REPORT, "result", {"gain": 7}),
        (REPORT, "result", {"gain": {"ratio": "better"}}),
        (REPORT, "result", {"figures": []}),
        (REPORT, "result", {"shares": [None]}),
        (REPORT, "result", {"notes": 1}),
        (REPORT, "result", {"seconds": {}}),
        (("report", "1", "--json"), "result", {"long_load": [1]}),
        (("solve", "1"), "problem", {"baseline": {"nonsense": 1}}),
        (("solve", "1"), "problem", {"knobs": {}}),
        (("solve", "1", "--json"), "profile", {"evidence/gain": -1}),
    ],
)
def test_what_makes_no_sense_is_refused(
    state: Path, words: tuple[str, ...], column: str, changes: dict[str, Any]
) -> None:
    alter(state, "runs", column, changes)
    assert said(state, *words)
