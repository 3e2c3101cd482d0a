"""A whole run whose store fails it: before anything is written, or with everything put back."""

import contextlib
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest
from fake_run import Silent
from small_disk import fill, free, make_read_only, small_disk
from store_records import filled

from autotune.errors import AutotuneError
from autotune.measure.phase import PhaseResult
from autotune.measure.workload import Phase, parse_workload
from autotune.preflight import checks
from autotune.problem.figure import Estimate
from autotune.safety.paths import open_journals
from autotune.store.database import Store
from autotune.store.opening import FILE_NAME
from autotune.system import sysfs
from autotune.system.array import find_array
from autotune.tuning import phase_runs, prepare
from autotune.tuning import run as running
from autotune.tuning.preparation import Options
from autotune.tuning.resume import unfinished
from autotune.tuning.run import Done
from autotune.tuning.winner import free_file

WORKLOAD = """
name = "made-up"
[[phases]]
name = "read"
weight = 1
load = { rw = "read", block_kib = 1024, buffered = true }
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 60 }
"""


class Machine:
    """An array on files, on which everything of a run is real but the figures."""

    def __init__(self, root: Path, state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_sysfs.raid6(root)
        self.root, self.state = root, state
        self.measured = 0
        self.written: list[Path] = []
        self.before_measurement: dict[int, Callable[[], None]] = {}
        for module in (running, prepare):
            monkeypatch.setattr(module, "find_array", lambda device: find_array(device, root))
        monkeypatch.setattr(running, "lock", lambda *_, **_how: contextlib.nullcontext())
        monkeypatch.setattr(checks, "program_missing", lambda: None)
        monkeypatch.setattr(phase_runs, "measure", self.measure)
        monkeypatch.setattr(sysfs, "write", self.write)
        self.originals = self.texts()

    def texts(self) -> dict[Path, str]:
        return {file: file.read_text() for file in (self.root / "sys").rglob("*") if file.is_file()}

    def write(self, path: Path, text: str) -> None:
        self.written.append(path)
        fake_sysfs.write(path, text)

    def measure(self, phase: Phase, *_: Any) -> PhaseResult:
        self.measured += 1
        self.before_measurement.get(self.measured, lambda: None)()
        figures = {f.name: Estimate(1e7 + 1e5 * self.measured, 0.01) for f in phase.figures()}
        return PhaseResult(phase.name, figures, 5.0, True, (), 0)

    def run(self, resume: bool = False) -> Done:
        options = Options("md0", parse_workload(WORKLOAD, "test"), "random", trials=8)
        return running.run(options, self.state, Silent(), resume=resume)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as where:
        yield where


@pytest.fixture
def machine(tmp_path: Path, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    handlers = [signal.getsignal(number) for number in signals]
    yield Machine(tmp_path / "root", disk, monkeypatch)
    for number, handler in zip(signals, handlers, strict=True):
        signal.signal(number, handler)


def garbage(disk: Path) -> None:
    (disk / FILE_NAME).write_bytes(b"garbage" * 1000)


def newer(disk: Path) -> None:
    with closing(sqlite3.connect(filled(disk))) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        (fill, "is full"),
        (make_read_only, "cannot be written"),
        (garbage, "is damaged"),
        (newer, "newer autotune"),
    ],
)
def test_a_store_that_cannot_be_used_ends_a_run_before_it_touches_the_array(
    machine: Machine, trouble: Callable[[Path], None], words: str
) -> None:
    trouble(machine.state)
    with pytest.raises(AutotuneError, match=words):
        machine.run()
    assert machine.written == []
    assert machine.measured == 0
    assert machine.texts() == machine.originals
    assert open_journals(machine.state) == []


@pytest.mark.parametrize("at", [1, 7, 13])
def test_a_disk_that_fills_up_ends_a_run_with_everything_put_back(
    machine: Machine, at: int
) -> None:
    machine.before_measurement[at] = lambda: fill(machine.state)
    with pytest.raises(AutotuneError, match="is full"):
        machine.run()
    # What is left of the log's last page may take one more trial, of two phases; the warm-up,
    # of as many, stores nothing.
    assert at <= machine.measured <= at + 4
    settings = {path for path in machine.written if path.name != "stripe_cache_size"}
    assert settings or at == 1
    assert machine.texts() == machine.originals
    assert open_journals(machine.state) == []
    free(machine.state)
    store = Store(machine.state)
    run = unfinished(store.runs())
    assert run is not None
    stored = store.trials(run.id)
    assert [trial.number for trial in stored] == list(range(1, len(stored) + 1))
    machine.before_measurement = {}
    done = machine.run(resume=True)
    assert done.number == run.id
    assert store.run(run.id).state == "done"
    assert store.trials(run.id)[: len(stored)] == stored
    assert machine.texts() == machine.originals


def test_a_damaged_trial_of_an_earlier_run_keeps_no_new_one_from_starting(
    machine: Machine,
) -> None:
    first = machine.run()
    with closing(sqlite3.connect(machine.state / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE trials SET status = 'nonsense' WHERE id = 3")
    with pytest.raises(AutotuneError):
        Store(machine.state).trials(first.number)
    again = machine.run()
    assert Store(machine.state).run(again.number).state == "done"


def test_a_value_that_autotune_does_not_set_is_left_as_it_is(machine: Machine) -> None:
    """`dev.raid.speed_limit_min` may be 0: every trial would be refused, since each sets it."""
    found = machine.root / "sys/block/md0/md/sync_speed_min"
    found.write_text("0 (system)\n")
    done = machine.run()
    assert "sync_speed_min" not in done.result.baseline
    assert done.result.trials > 2
    assert found.read_text() == "0 (system)\n"


def test_a_new_store_replaces_no_profile_of_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "md0-run1.json"
    for expected in ("md0-run1.json", "md0-run1-2.json", "md0-run1-3.json"):
        free = free_file(path)
        assert free.name == expected
        free.write_text("{}")
