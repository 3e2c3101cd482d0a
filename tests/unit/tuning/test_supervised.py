"""A process that dies without a word ends with a sentence, and a run with its trials."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_records import record

from autotune.safety.handed_over import let_wait
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, journal_path
from autotune.store.database import Store
from autotune.tuning.resume import interrupted

WORKER = """
import ctypes, os, signal, sys, time
from pathlib import Path
from autotune.errors import AutotuneError
from autotune.suggested import in_folder
from autotune.tuning.supervised import supervise, tell
try:
    code = supervise()
except AutotuneError as error:
    sys.exit(f"said: {in_folder(str(error))}")
if code is not None:
    sys.exit(code)
"""


def worker(lines: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", WORKER + lines, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def ended(lines: str) -> tuple[int, str]:
    process = worker(lines)
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_an_exit_code_is_the_workers() -> None:
    assert ended("sys.exit(2)") == (2, "")
    assert ended("pass") == (0, "")


def test_a_segmentation_fault_ends_with_one_sentence_that_says_where() -> None:
    code, errors = ended("ctypes.string_at(0)")
    assert code == 1
    assert errors.startswith("said: The command was ended by a segmentation fault in ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("state", ["running", "done"])
def test_a_run_is_marked_and_its_trials_are_kept(tmp_path: Path, state: str) -> None:
    store = Store(tmp_path)
    run = store.start_run("u", "/dev/md0", "print", {"strategy": "random"})
    store.add_trial(run, record(1))
    if state == "done":
        store.finish_run(run, "done", "nothing better")
    before = Store(tmp_path).run(run)
    folder = str(tmp_path)
    code, errors = ended(f"tell(Path({folder!r}), 'u', '/dev/md0', {run}); ctypes.string_at(0)")
    assert code == 1
    assert f"are back cannot be known, since {tmp_path / 'journal'} is gone" in errors
    after = Store(tmp_path).run(run)
    if state == "done":
        assert after == before
        return
    assert f"`autotune solve {run} --state-dir " in errors
    assert after.state == "interrupted"
    assert "segmentation fault" in after.outcome
    assert interrupted([after]) == after


def test_what_stays_in_force_is_not_said_to_be_back(tmp_path: Path) -> None:
    folder, recorded = str(tmp_path), applied_path(tmp_path, "u")
    journal_path(tmp_path, "u").parent.mkdir()
    recorded.parent.mkdir()
    # That of a profile before the run, be it written only now.
    recorded.touch()
    tells = f"tell(Path({folder!r}), 'u', '/dev/md0', 1"
    assert "The original settings are back." in ended(f"{tells}); ctypes.string_at(0)")[1]
    _, errors = ended(f"{tells}); {tells}, kept=True); ctypes.string_at(0)")
    assert "What it found is in force; `autotune restore /dev/md0 --state-dir " in errors
    assert "are back." not in errors


def test_what_waits_for_the_end_of_a_sync_is_not_said_to_be_back(tmp_path: Path) -> None:
    folder, bound = str(tmp_path), tmp_path / "md0/md/sync_min"
    bound.parent.mkdir(parents=True)
    bound.write_text("0\n")
    path = journal_path(tmp_path, "u")
    journal = new_journal(path, "u", "/dev/md0", [bound])
    bound.write_text("8192\n")
    let_wait(journal)
    code, errors = ended(f"tell(Path({folder!r}), 'u', '/dev/md0', 1); ctypes.string_at(0)")
    assert code == 1
    assert "The original settings are back, but sync_min of /dev/md0 goes back by itself" in errors
    bound.write_text("0\n")
    _, errors = ended(f"tell(Path({folder!r}), 'u', '/dev/md0', 1); ctypes.string_at(0)")
    assert "The original settings are back." in errors


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_for_the_command_is_the_workers(number: signal.Signals) -> None:
    process = worker(
        f"signal.signal({int(number)}, lambda *_: sys.exit(7))\n"
        # A signal just before a sleep does not end it.
        "print('ready', flush=True)\nfor _ in range(600): time.sleep(0.1)"
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 7


def test_who_kills_the_command_kills_the_worker() -> None:
    process = worker("print(os.getpid(), flush=True)\ntime.sleep(60)")
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate(timeout=60)
    until = time.monotonic() + 30
    while time.monotonic() < until and Path(f"/proc/{pid}").exists():
        time.sleep(0.05)
    assert not Path(f"/proc/{pid}").exists()
    assert pid != os.getpid()


WATCHED = """
from autotune.safety.watch import Watch
from autotune.system.array import find_array
import fake_sysfs
fake_sysfs.raid6(Path(sys.argv[1]))
watch = Watch(find_array("md0", Path(sys.argv[1])), ())
with watch.signals.caught(lambda text: print(text, flush=True)):
    print("ready", flush=True)
    while True:
        watch._looked = time.monotonic()
        watch()
        time.sleep(0.01)
"""


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_terminal_stops_neither_the_command_nor_its_worker(tmp_path: Path) -> None:
    """Ctrl-Z would leave in force what is only tried."""
    process = worker(WATCHED, str(tmp_path))
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        # As a terminal does: to all that belong to the command.
        for number in (signal.SIGTSTP, signal.SIGTTOU):
            os.killpg(process.pid, number)
        assert process.stdout.readline().startswith("Ctrl-Z does not stop this")
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        assert [state_of(int(pid)) in "RS" for pid in (process.pid, *children)] == [True, True]
    finally:
        process.kill()
        process.communicate(timeout=60)


def test_who_ignores_the_end_of_children_does_not_keep_the_command_from_ending() -> None:
    """As bash does after `trap '' CHLD`, for all that it starts."""
    words = ["bash", "-c", "trap '' CHLD; exec \"$@\"", "bash", sys.executable, "-m", "autotune"]
    done = subprocess.run(
        [*words, "run", "/dev/none"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2, done.stderr
    assert "There is no /dev/none" in done.stderr
