"""A run that is killed and resumed on a bare RAID6 in the lab; `test_run.py` runs this there."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from guest import FAST, autotune, autotune_json, knob_files, running, start, wait_until

from autotune.store.database import Store

PROFILE = """{"schema_version": 1, "name": "p", "created": "2026-01-01T00:00:00Z",
"proven_on": {"level": "raid6", "members": 5, "chunk_kib": 64, "media": "hdd", "kernel": "6.1"},
"workload": "fast", "knobs": {"stripe_cache_size": 512}, "before": {"stripe_cache_size": 256},
"ram_bytes": 1, "ram_budget_bytes": 2, "evidence": {"confirmed": false, "gain": 1.5, "low": 1.4,
"high": 1.6, "trials": 9, "seconds": 9, "figures": {}}}"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    """A whole run: two baseline trials, four of the search, and the confirming ones."""
    path = tmp_path_factory.mktemp("workload") / "fast.toml"
    path.write_text(FAST)
    where = ("run", "/dev/md0", "--destructive", "/dev/md0", "--ram-budget", "96MiB")
    how = ("--workload", path, "--strategy", "recipe", "--trials", 4, "--p99-ceiling", "5s")
    return (*where, *how)


def trials(state: Path, run: int) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = autotune_json("history", run, state=state)["trials"]
    return listed


def test_a_killed_run_goes_on_where_it_was_cut(state: Path, words: tuple[object, ...]) -> None:
    before = knob_files()
    process = start(*words, state=state)

    def in_the_third_of_the_search() -> bool:
        store = Store.existing(state)
        return store is not None and bool(store.runs()) and len(store.trials(1)) == 4

    wait_until(in_the_third_of_the_search, 200, "four trials")
    wait_until(lambda: bool(running("fio")), what="the fifth trial")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    wait_until(lambda: not list((state / "journal").glob("*")), 60, "the guardian")
    wait_until(lambda: not running("fio"), 60, "fio to end")
    assert knob_files() == before
    kept = trials(state, 1)
    assert [t["number"] for t in kept] == [1, 2, 3, 4]

    done = autotune_json(*words, "--resume", state=state)
    assert knob_files() == before
    assert done["run"] == 1
    after = trials(state, 1)
    assert after[:4] == kept
    assert [t["number"] for t in after] == list(range(1, len(after) + 1))
    roles = [t["role"] for t in after]
    assert roles[:6] == ["baseline", "baseline", *["search"] * 4]
    searched = [json.dumps(t["requested"], sort_keys=True) for t in after if t["role"] == "search"]
    assert len(set(searched)) == len(searched)
    assert done["trials"] == len(after)
    assert autotune_json("history", state=state)[0]["state"] == "done"


def test_a_run_that_ended_has_nothing_to_resume(state: Path, words: tuple[object, ...]) -> None:
    again = autotune(*words, "--resume", state=state)
    assert again.returncode == 1
    assert "nothing to resume" in again.stderr


def test_another_answer_is_chosen_without_the_array(state: Path, tmp_path: Path) -> None:
    before = knob_files()
    run = autotune_json("history", 1, state=state)
    decided = autotune_json("solve", 1, state=state)
    assert decided["confirmed"]
    assert decided["keep"] == bool(run["profile"])
    assert decided["setting"] == run["named"]["balanced"]["setting"]
    strict = autotune("solve", 1, "--p99-ceiling", "1us", "--save", tmp_path / "p", state=state)
    assert strict.returncode == 1
    # In four seconds the probe makes fewer requests than a p99 takes.
    assert "no p99" in strict.stderr
    assert not (tmp_path / "p").exists()
    assert knob_files() == before


def test_a_profile_that_was_not_confirmed_says_so_when_applied(state: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(PROFILE)
    applied = autotune("apply", path, "/dev/md0", state=state)
    assert applied.returncode == 0, applied.stderr
    assert "not confirmed" in applied.stderr
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
