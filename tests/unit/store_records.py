"""Stores for tests, and trials of which every part follows from the number."""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.store import TrialRecord
from autotune.store.database import Store
from autotune.store.opening import FILE_NAME

PHASES = ("read", "write", "resync")


def record(number: int, size: int = 1) -> TrialRecord:
    """A trial; `size` times as large as one of a few figures, to take several pages."""
    setting = {"stripe_cache_size": 256 + number, "scheduler": "bfq"}
    return TrialRecord(
        number,
        "search",
        datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number),
        12.5 + number,
        Status.ABORTED,
        f"reason {number}" * size,
        setting,
        {**setting, "stripe_cache_size": 255 + number},
        {
            f"{phase}-{n}.throughput": Estimate(1e8 * number, 0.01 * n)
            for phase in PHASES
            for n in range(size)
        },
        PHASES[: 1 + number % 3],
        number << 40,
    )


def filled(folder: Path, trials: int = 8, size: int = 20) -> Path:
    """A store with one run, its file complete without the log beside it; returns the file."""
    store = Store(folder)
    run = store.start_run("abc", "/dev/md0", "print", {"seed": 1})
    for number in range(1, trials + 1):
        store.add_trial(run, record(number, size))
    file = folder / FILE_NAME
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return file
