"""One run at a time, none on what an earlier one left, and nobody else at the locks."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import RefusalError
from autotune.safety.handed_over import keep
from autotune.safety.lock_holders import holder
from autotune.safety.locks import alone, is_locked, lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.shared_folder import open_own
from autotune.system.array import Array, find_array


@pytest.fixture
def array(tmp_path: Path) -> Array:
    fake_sysfs.raid6(tmp_path)
    return find_array("md0", tmp_path)


@pytest.fixture
def other(tmp_path: Path) -> Array:
    """An array on the same disks."""
    root = tmp_path / "other"
    fake_sysfs.raid6(root)
    (root / "sys/block/md0/md/uuid").write_text("00000000-00000000-00000000-00000001\n")
    return find_array("md0", root)


def test_an_array_is_held_once(array: Array, tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    assert not is_locked(array.uuid, locks)
    with lock(array, folder=locks):
        assert is_locked(array.uuid, locks)
        with pytest.raises(RefusalError, match="Another run"), lock(array, folder=locks):
            pass
    assert not is_locked(array.uuid, locks)


def test_guards_share_disks_with_each_other_and_not_with_a_run(
    array: Array, other: Array, tmp_path: Path
) -> None:
    locks = tmp_path / "locks"
    with lock(array, tmp_path / "a", locks, guard=True):
        # Its own journal is not what bars the other.
        (tmp_path / "a").touch()
        with lock(other, tmp_path / "b", locks, guard=True):
            pass
        with pytest.raises(RefusalError, match="the disk sda"), lock(other, folder=locks):
            pass
        with (
            pytest.raises(RefusalError, match="works on /dev/md0"),
            lock(array, folder=locks, guard=True),
        ):
            pass
    with (
        lock(array, folder=locks),
        pytest.raises(RefusalError, match="the disk sda"),
        lock(other, folder=locks, guard=True),
    ):
        pass


def test_what_an_earlier_run_left_with_another_state_dir_is_found(
    array: Array, tmp_path: Path
) -> None:
    locks, journals = tmp_path / "locks", [tmp_path / s / "journal/u.jsonl" for s in ("a", "b")]
    with lock(array, journals[0], locks):
        journals[0].parent.mkdir(parents=True)
        journals[0].touch()
    # A restore of something else in between forgets nothing.
    with lock(array, folder=locks):
        pass
    with pytest.raises(RefusalError, match=f"--state-dir {tmp_path}/a` first"):  # noqa: SIM117
        with lock(array, journals[1], locks):
            pass
    with lock(array, journals[0], locks):
        journals[0].unlink()
    with lock(array, journals[1], locks):
        pass


def test_what_is_applied_with_another_state_dir_is_found(
    array: Array, other: Array, tmp_path: Path
) -> None:
    """It would be taken for the original values, as long as it is in force."""
    locks, states = tmp_path / "locks", (tmp_path / "a", tmp_path / "b")
    first, second = (journal_path(state, array.uuid) for state in states)
    file = tmp_path / "sys/block/sda/queue/nr_requests"
    applied = applied_path(states[0], array.uuid)
    with lock(array, first, locks):
        journal = new_journal(first, array.uuid, array.device, [file])
        journal.writing(file, "64")
        file.write_text("64\n")
        journal.settled()
        keep(journal, applied)
        journal.release()
    # Of another array in the same folder nothing is applied, and it is what the disks remember.
    with lock(other, first.with_name("o.jsonl"), locks, applies=True):
        pass
    for each in (array, other):
        path = journal_path(states[1], each.uuid)
        with pytest.raises(RefusalError, match=f"--state-dir {states[0]}` first, or delete"):  # noqa: SIM117
            with lock(each, path, locks, applies=True):
                pass
    # What leaves nothing in force may go on: a rebuild or a check does not wait for that.
    with lock(array, second, locks):
        pass
    # Nor does that make it forget what is in force.
    with pytest.raises(RefusalError, match="in force"), lock(array, second, locks, applies=True):
        pass
    with lock(array, first, locks):
        file.write_text("128\n")
    with lock(array, second, locks, applies=True):
        pass


def test_nobody_else_can_open_a_lock(array: Array, tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    locks.mkdir()
    locks.chmod(0o755)
    (locks / f"array-{array.uuid}").touch()
    (locks / f"array-{array.uuid}").chmod(0o644)
    with lock(array, folder=locks):
        pass
    assert locks.stat().st_mode & 0o777 == 0o700
    assert not [path for path in locks.rglob("*") if path.stat().st_mode & 0o077]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_elses_is_refused(array: Array, tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    locks.mkdir()
    os.chown(locks, 65534, 65534)
    with pytest.raises(RefusalError, match="belongs to user 65534"), lock(array, folder=locks):
        pass


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(RefusalError, match="is no folder"):
        open_own(tmp_path / "link", tmp_path / "link")


def test_whoever_holds_a_lock_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    script = (
        "import fcntl, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX);"
        "print(flush=True); time.sleep(60)"
    )
    held = subprocess.Popen([sys.executable, "-c", script, file], stdout=subprocess.PIPE)
    try:
        assert held.stdout is not None
        held.stdout.readline()
        with file.open() as mine:
            with pytest.raises(BlockingIOError):
                fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
            assert f"process {held.pid} ({sys.executable} -c" in holder(mine.fileno())
    finally:
        held.kill()
        held.wait()


def test_a_child_that_goes_on_holds_the_lock_of_a_dead_process(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    script = (
        "import fcntl, os, sys, time; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX);"
        "child = os.fork(); child and print(child, flush=True); time.sleep(60)"
    )
    held = subprocess.Popen([sys.executable, "-c", script, file], stdout=subprocess.PIPE)
    assert held.stdout is not None
    child = int(held.stdout.readline())
    try:
        held.kill()
        # Not waited for, so that it still has its number.
        os.waitid(os.P_PID, held.pid, os.WEXITED | os.WNOWAIT)
        with file.open() as mine:
            assert f"process {child} ({sys.executable} -c" in holder(mine.fileno())
    finally:
        os.kill(child, signal.SIGKILL)
        held.wait()


def test_two_commands_do_not_change_the_service_at_once(tmp_path: Path) -> None:
    """What the one has just turned off would be, for the other, how it was found."""
    folder = tmp_path / "locks"
    with alone("service", folder):
        with pytest.raises(RefusalError, match="Another command changes the service just now"):
            alone("service", folder).__enter__()
        with alone("other", folder):
            pass
    with alone("service", folder):
        pass


def test_a_lock_that_cannot_be_taken_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(RefusalError, match="cannot be taken: No such file"):
        alone("service", tmp_path / "not/there").__enter__()
