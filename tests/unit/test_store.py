"""The store: whole trials, in order, and errors that say what to do."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from autotune.errors import AutotuneError, UsageError
from autotune.search import Estimate, Status
from autotune.store import FILE_NAME, Store, TrialRecord


def record(number: int) -> TrialRecord:
    return TrialRecord(
        number,
        "search",
        datetime.now(UTC),
        12.5,
        Status.COMPLETE,
        "",
        {"stripe_cache_size": 4096, "scheduler": "bfq"},
        {"stripe_cache_size": 4096, "scheduler": "bfq"},
        {"write.throughput": Estimate(1e8, 0.03)},
        ("write",),
        1 << 40,
    )


def test_what_is_stored_comes_back_from_another_process(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {"seed": 1})
    trials = [record(1), record(2)]
    for trial in trials:
        store.add_trial(run, trial)
    store.finish_run(run, "done", "better", {"name": "p"})
    again = Store(tmp_path)
    assert again.trials(run) == trials
    (found,) = again.runs("abc")
    assert (found.state, found.outcome, found.trials) == ("done", "better", 2)
    assert found.ended is not None
    assert again.runs("other") == []


def test_a_trial_is_stored_once(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run = store.start_run("abc", "/dev/md0", "print", {})
    store.add_trial(run, record(1))
    with pytest.raises(AutotuneError):
        store.add_trial(run, record(1))
    assert len(store.trials(run)) == 1


def test_an_unknown_run_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="autotune history"):
        Store(tmp_path).trials(7)


def test_a_file_that_is_no_database_is_said_to_be_unusable(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text("not a database, but long enough to be looked at" * 100)
    with pytest.raises(AutotuneError, match="--state-dir"):
        Store(tmp_path)


def test_looking_makes_no_store(tmp_path: Path) -> None:
    assert Store.existing(tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_the_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    Store(tmp_path)
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o077 == 0
