"""The journal, on files that stand for sysfs."""

import errno
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from journal_files import UUID, Files, files

from autotune.errors import AutotuneError, RefusalError, RestoreError, SignalledError
from autotune.measure.scratch import scratch_file
from autotune.measure.write_budget import Written
from autotune.safety import guardian as guarding
from autotune.safety import heartbeat
from autotune.safety import journal as journals
from autotune.safety import restore as restoring
from autotune.safety.guardian import Guardian, guarded
from autotune.safety.journal import Journal
from autotune.safety.journal_text import OVER, is_over
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import clear_if_torn, is_held, journal_path, open_journals
from autotune.safety.restore import restore
from autotune.system import sysfs

__all__ = ["files"]


def test_a_journal_that_is_gone_is_not_made_anew(files: Files) -> None:
    journal = files.open()
    files.path.unlink()
    with pytest.raises(AutotuneError, match="cannot be written"):
        journal.writing(files.md / "stripe_cache_size", "4096")
    assert not files.path.exists()


@pytest.mark.parametrize("shared", ["state", "state/journal", "state/applied", "."])
@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_can_write_to_keeps_no_journal(
    files: Files, shared: str, mode: int
) -> None:
    files.path.parent.mkdir(parents=True, exist_ok=True)
    folder = files.root / shared
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    with pytest.raises(AutotuneError, match="can be written to by others than its owner"):
        files.open()
    # As /tmp: only owners remove their own there.
    folder.chmod(0o1777)
    files.open()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a folder away")
def test_a_folder_of_somebody_elses_keeps_no_journal(files: Files) -> None:
    files.path.parent.mkdir(parents=True, exist_ok=True)
    os.chown(files.root / "state", 1, 1)
    with pytest.raises(AutotuneError, match="choose another --state-dir"):
        files.open()


@pytest.mark.parametrize("other", ["link", "file"])
def test_another_file_with_its_name_gets_no_line(files: Files, other: str) -> None:
    journal = files.open()
    files.path.rename(files.path.with_suffix(".away"))
    victim = files.path.with_name("victim")
    victim.write_text("")
    if other == "link":
        files.path.symlink_to(victim)
    else:
        victim.rename(files.path)
    with pytest.raises(AutotuneError, match="cannot be written"):
        journal.writing(files.md / "stripe_cache_size", "4096")
    assert files.path.read_text() == ""


def test_a_journal_of_a_run_under_way_is_not_restored(files: Files) -> None:
    journal = files.open()
    with pytest.raises(RefusalError, match="under way"):
        files.reload().claim()
    assert journal.path.exists()


def test_the_guardian_waits_until_a_dying_run_lets_go(tmp_path: Path) -> None:
    """A process that is killed closes its files one by one: the pipe before the journal."""
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path, UUID)
    journal = new_journal(path, UUID, "/dev/md0", [file])
    guardian = Guardian(journal)
    journal.writing(file, "4096")
    file.write_text("4096\n")
    guardian.heartbeat.stop()
    time.sleep(0.5)
    assert file.read_text() == "4096\n"
    journal.release()
    assert guardian._process.wait(10) == 0
    assert file.read_text() == "256"
    assert not path.exists()


@pytest.mark.parametrize("damage", ["removed", "emptied"])
def test_the_guardian_needs_no_journal_that_is_still_there(tmp_path: Path, damage: str) -> None:
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path / "state", UUID)
    journal = new_journal(path, UUID, "/dev/md0", [file])
    guardian = Guardian(journal)
    journal.writing(file, "4096")
    file.write_text("4096\n")
    if damage == "removed":
        shutil.rmtree(tmp_path / "state")
    else:
        path.write_text("")
    guardian.heartbeat.stop()
    journal.release()
    assert guardian._process.wait(10) == 0
    assert file.read_text() == "256"
    assert not path.exists()


class _Failing(io.FileIO):
    """Of a disk that fails."""

    def read(self, _size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("done", [False, True])
def test_where_the_journals_disk_fails_the_originals_go_back_unless_nothing_is_left(
    tmp_path: Path, done: bool
) -> None:
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path / "state", UUID)
    journal = new_journal(path, UUID, "/dev/md0", [file])
    first = path.read_bytes()
    journal.writing(file, "4096")
    file.write_text("4096\n")
    journal.release()
    with _Failing(path) as failing:
        end = heartbeat.End.DONE if done else heartbeat.End.DEAD
        left = guarding._what_is_left(path, failing, first, end)
        assert (left is None) == done
        if left is not None:
            assert restore(left).complete
    assert file.read_text() == ("4096\n" if done else "256")


@pytest.mark.parametrize("kept", [False, True])
def test_the_guardian_hears_whether_anything_is_left(
    monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    reading, writing = os.pipe()
    monkeypatch.setattr(heartbeat, "BEAT_S", 0.01)
    beats = heartbeat.Heartbeat(writing)
    time.sleep(0.1)
    beats.stop(kept)
    before = os.dup(0)
    os.dup2(reading, 0)
    try:
        end = heartbeat.End.DONE if kept else heartbeat.End.DEAD
        assert heartbeat.wait_for_the_end(os.getpid()) == end
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reading)


def test_a_tuner_that_is_killed_before_its_guardian_is_ready_leaves_no_journal(
    tmp_path: Path,
) -> None:
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path, UUID)
    journal = new_journal(path, UUID, "/dev/md0", [file])
    reading, writing = os.pipe()
    os.close(reading)
    command = (sys.executable, "-P", "-m", "autotune.safety.guardian", str(path))
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writing) as guardian:
        os.close(writing)
        journal.release()
    assert guardian.returncode == 0
    assert not path.exists()


def test_the_guardian_outlives_the_signal_that_ends_a_service(tmp_path: Path) -> None:
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path, UUID)
    with guarded(new_journal(path, UUID, "/dev/md0", [file]), print) as guardian:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            guardian._process.send_signal(number)
        time.sleep(0.2)
        assert guardian.alive
        guardian._process.kill()
        guardian._process.wait()
        assert not guardian.alive
    assert not path.exists()


STOPPABLE = """
import os, sys, time
from pathlib import Path
from autotune.safety import guardian, heartbeat
from autotune.safety.new_journal import new_journal
path, file, sys.executable = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
heartbeat.BEAT_S = 0.1
with guardian.guarded(new_journal(path, "u", "/dev/md0", [file]), print) as guard:
    guard.journal.writing(file, "4096")
    file.write_text("4096")
    print("ready", flush=True)
    time.sleep(600)
"""
IMPATIENT = f"""#!{sys.executable}
import sys, syslog, time
from pathlib import Path
from autotune.safety import guardian, heartbeat
heartbeat.BEAT_S, heartbeat.SILENCE_S, guardian.HOLD_S = 0.1, 5.0, 5.0
# Whoever keeps the log may hang, too.
syslog.syslog = lambda *_: time.sleep(45)
sys.exit(guardian.watch_over(Path(sys.argv[-1])))
"""
CANNOT_DIE = IMPATIENT.replace("sys.exit", "heartbeat.os.kill = lambda *_: None\nsys.exit")


def _goes_back(state: Path, file: Path) -> None:
    deadline = time.monotonic() + 30
    while journal_path(state, UUID).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert file.read_text() == "256"


@pytest.mark.parametrize("dies", [True, False])
def test_a_tuner_that_is_stopped_does_not_keep_what_it_tries_in_force(
    tmp_path: Path, dies: bool
) -> None:
    """Nor does one that waits in the kernel when it is killed, and holds its journal."""
    file, python = tmp_path / "stripe_cache_size", tmp_path / "python"
    file.write_text("256\n")
    python.write_text(IMPATIENT if dies else CANNOT_DIE)
    python.chmod(0o755)
    words = [str(journal_path(tmp_path, UUID)), str(file), str(python)]
    with subprocess.Popen(
        [sys.executable, "-c", STOPPABLE, *words], stdout=subprocess.PIPE, text=True
    ) as tuner:
        try:
            assert tuner.stdout is not None
            assert tuner.stdout.readline() == "ready\n"
            time.sleep(7)
            assert tuner.poll() is None
            assert file.read_text() == "4096"
            tuner.send_signal(signal.SIGSTOP)
            if dies:
                assert tuner.wait(30) == -signal.SIGKILL
            _goes_back(tmp_path, file)
        finally:
            tuner.kill()


FORKED = """
import os, threading
if os.fork():
    # As `run` does.
    os._exit(100 + os.waitstatus_to_exitcode(os.wait()[1]))
"""
HANGS = FORKED + STOPPABLE.replace(
    "    time.sleep(600)",
    """    import ctypes
    # As one that waits for a disk: in the kernel, until somebody reads from the FIFO.
    libc, actions = ctypes.CDLL(None), ctypes.create_string_buffer(256)
    libc.posix_spawn_file_actions_init(actions)
    fifo = os.fsencode(sys.argv[4])
    libc.posix_spawn_file_actions_addopen(actions, 5, fifo, os.O_WRONLY, 0)
    words = (ctypes.c_char_p * 2)(b"true", None)
    libc.posix_spawn(None, b"/bin/true", actions, None, words, words)
    time.sleep(600)""",
)


def test_a_tuner_that_hangs_in_the_kernel_does_not_keep_what_it_tries_in_force(
    tmp_path: Path,
) -> None:
    """Its threads go on, that which beats, too."""
    file, python, fifo = (tmp_path / n for n in ("stripe_cache_size", "python", "fifo"))
    file.write_text("256\n")
    python.write_text(IMPATIENT)
    python.chmod(0o755)
    os.mkfifo(fifo)
    words = [str(journal_path(tmp_path, UUID)), str(file), str(python), str(fifo)]
    with subprocess.Popen(
        [sys.executable, "-c", HANGS, *words], stdout=subprocess.PIPE, text=True
    ) as tuner:
        try:
            assert tuner.stdout is not None
            assert tuner.stdout.readline() == "ready\n"
            assert tuner.wait(30) == 100 - signal.SIGKILL
            _goes_back(tmp_path, file)
        finally:
            tuner.kill()
            # Whoever waits for a reader has one now.
            os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))


def test_a_journal_whose_disk_hangs_keeps_nothing_from_going_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switch of the scheduler, which comes first, is noted in it."""
    names = ("queue/scheduler", "queue/nr_requests", "md/stripe_cache_size")
    originals = ("[none] bfq", "64", "256")
    files = [tmp_path / "sys/block/vda" / name for name in names]
    for file, text in zip(files, originals, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    journal = new_journal(journal_path(tmp_path, UUID), UUID, "/dev/md0", files)
    for file, text, reads in zip(
        files, ("bfq", "128", "4096"), ("none [bfq]", "128", "4096"), strict=True
    ):
        journal.writing(file, text)
        file.write_text(reads)
    thaw, begun = threading.Event(), []

    def frozen(_descriptor: int, entry: object) -> None:
        begun.append(entry)
        thaw.wait(60)

    monkeypatch.setattr(journals, "append", frozen)
    monkeypatch.setattr(restoring, "PATIENCE_S", 0.2)
    done = threading.Thread(target=restore, args=(journal,), daemon=True)
    done.start()
    done.join(10)
    waits = done.is_alive()
    thaw.set()
    assert begun
    assert not waits
    assert [file.read_text() for file in files] == ["none", "64", "256"]


def test_a_guardian_that_is_stopped_is_none(tmp_path: Path) -> None:
    path = journal_path(tmp_path, UUID)
    with guarded(new_journal(path, UUID, "/dev/md0", []), print) as guardian:
        guardian._process.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + 10
        while guardian.alive and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not guardian.alive
    assert not path.exists()


def test_a_guardian_that_has_to_wait_for_the_kernel_is_left_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store can take minutes, behind a disk that hangs."""
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path, UUID)
    journal = new_journal(path, UUID, "/dev/md0", [file])
    guardian = Guardian(journal)
    journal.writing(file, "4096")
    file.write_text("4096\n")
    monkeypatch.setattr("autotune.safety.guardian.DISMISS_TIMEOUT_S", 0.5)
    # It waits for this one's hold on the journal.
    guardian.dismiss()
    journal.release()
    deadline = time.monotonic() + 30
    while path.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert file.read_text() == "256"


def test_where_nothing_can_be_locked_nothing_is_left(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_file: object, _how: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patch:
        patch.setattr("autotune.safety.journal.fcntl.flock", refuse)
        with pytest.raises(AutotuneError, match="No locks available"):
            files.open()
    assert not files.path.exists()
    assert files.open().path.exists()


@pytest.mark.parametrize("kind", ["fifo", "link", "for all"])
def test_a_journal_that_others_can_have_written_is_ignored(files: Files, kind: str) -> None:
    journal = files.open()
    journal.release()
    other = files.root / "other"
    files.path.replace(other)
    if kind == "fifo":
        os.mkfifo(files.path)
    elif kind == "link":
        files.path.symlink_to(other)
    else:
        other.replace(files.path)
        files.path.chmod(0o666)
    with pytest.raises(AutotuneError, match="only root can write"):
        files.reload()


@pytest.mark.parametrize("refusals", [1, 100])
def test_what_the_tuner_could_not_put_back_the_guardian_tries_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusals: int
) -> None:
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")

    def refused(path: Path, text: str, timeout_s: float = 30.0) -> None:
        raise AutotuneError("EBUSY")

    def tune() -> None:
        path = journal_path(tmp_path / "state", UUID)
        with guarded(new_journal(path, UUID, "/dev/md0", [file]), print) as guardian:
            guardian.journal.writing(file, "4096")
            file.write_text("4096\n")
            monkeypatch.setattr(sysfs, "write", refused)
            if refusals > 1:
                # The guardian is refused too.
                file.unlink()
                file.mkdir()

    if refusals == 1:
        tune()
        assert file.read_text() == "256"
    else:
        with pytest.raises(RestoreError, match="stripe_cache_size"):
            tune()
    assert bool(open_journals(tmp_path / "state")) == (refusals > 1)


def test_a_journal_that_cannot_be_cleared_is_no_setting_that_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the state folder's filesystem has become read-only after an error."""
    file = tmp_path / "md/stripe_cache_size"
    file.parent.mkdir()
    file.write_text("256\n")
    path = journal_path(tmp_path / "state", UUID)

    def read_only(_journal: Journal) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    # The guardian, a process of its own, can.
    monkeypatch.setattr(Guardian, "dismiss", lambda self: self._process.kill())

    def tune() -> None:
        with guarded(new_journal(path, UUID, "/dev/md0", [file]), print) as guardian:
            guardian.journal.writing(file, "4096")
            file.write_text("4096\n")
            monkeypatch.setattr(Journal, "close", read_only)
            raise AutotuneError("Nothing more can be written down.")

    with pytest.raises(RestoreError) as told:
        tune()
    assert str(told.value) == (
        "Nothing more can be written down. Not everything could be put back: all settings are, "
        f"but {path} cannot be cleared (Read-only file system). Correct that and run "
        "`autotune restore`."
    )
    assert file.read_text() == "256"


def test_what_a_sync_keeps_from_going_back_goes_back_after_it(tmp_path: Path) -> None:
    file, action = tmp_path / "md/group_thread_cnt", tmp_path / "md/sync_action"
    file.parent.mkdir()
    file.write_text("0\n")
    action.write_text("idle\n")
    path, told = journal_path(tmp_path / "state", UUID), list[str]()
    with guarded(new_journal(path, UUID, "/dev/md0", [file]), told.append) as guardian:
        guardian.journal.writing(file, "4")
        file.write_text("4\n")
        action.write_text("recover\n")
    assert "goes back by itself" in told[0]
    assert not path.exists()
    # Another's journal of the same file would not take what is tuned for the original.
    with guarded(new_journal(path, UUID, "/dev/md0", [file]), told.append) as guardian:
        assert guardian.journal.record.originals[str(file)] == "0"
    time.sleep(1)
    assert file.read_text() == "4\n"
    action.write_text("idle\n")
    deadline = time.monotonic() + 20
    while open_journals(tmp_path / "state") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert file.read_text() == "0"
    assert not open_journals(tmp_path / "state")


def test_originals_go_back_even_if_the_journal_is_gone(tmp_path: Path) -> None:
    """Its file system may be unmounted under a run."""
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path / "state", UUID)
    with guarded(new_journal(path, UUID, "/dev/md0", [file]), print) as guardian:
        guardian.journal.writing(file, "4096")
        file.write_text("4096\n")
        shutil.rmtree(path.parent)
    assert file.read_text() == "256"


def test_a_journal_that_was_restored_meanwhile_is_not_restored_again(files: Files) -> None:
    journal = files.open()
    left = files.reload()
    journal.close()
    with pytest.raises(FileNotFoundError):
        left.claim()


def test_nothing_is_written_that_has_no_original(files: Files) -> None:
    with pytest.raises(AutotuneError, match="not in the journal"):
        files.open().writing(files.root / "etc/passwd", "x")


def test_a_journal_that_was_left_before_anything_was_changed_is_in_nobodys_way(
    files: Files,
) -> None:
    files.open().release()
    (files.md / "stripe_cache_size").write_text("512")
    assert files.open().record.originals[str(files.md / "stripe_cache_size")] == "512"


def test_one_of_an_earlier_boot_is_for_a_restore(files: Files) -> None:
    """It has kept udev from what is persisted since, and a restore asks udev again."""
    files.open().release()
    files.boot("boot-2")
    with pytest.raises(RefusalError, match="autotune restore"):
        files.open()
    assert files.path.exists()


def test_tuned_values_never_become_originals(files: Files) -> None:
    files.write(files.open(), files.md / "stripe_cache_size", "4096")
    with pytest.raises(RefusalError, match="autotune restore"):
        files.open()
    assert files.reload().record.originals[str(files.md / "stripe_cache_size")] == "256"


@pytest.mark.parametrize("keep", [0.2, 0.9])
def test_a_last_line_that_was_cut_is_ignored(files: Files, keep: float) -> None:
    journal = files.open()
    whole = len(files.path.read_bytes())
    journal.writing(files.md / "stripe_cache_size", "4096")
    text = files.path.read_bytes()
    files.path.write_bytes(text[: whole + int((len(text) - whole) * keep)])
    assert files.reload().record.ours == {}


def test_a_damaged_line_in_the_middle_hides_no_later_one(files: Files) -> None:
    journal = files.open()
    head = len(files.path.read_bytes().splitlines())
    for name, text in (("stripe_cache_size", "4096"), ("sync_speed_max", "150000")):
        journal.writing(files.md / name, text)
    lines = files.path.read_text().splitlines(keepends=True)
    files.path.write_text("".join([*lines[:head], "{garbage\n", *lines[head + 1 :]]))
    record = files.reload().record
    # What was not read may have been a change of any file, so all originals go back.
    assert record.lost
    assert record.ours == {str(files.md / "sync_speed_max"): ["150000"]}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind":"open"}'])
def test_a_journal_without_a_head_says_that_nothing_was_changed(files: Files, text: str) -> None:
    files.path.parent.mkdir(parents=True)
    files.path.write_text(text)
    with pytest.raises(AutotuneError, match="nothing was"):
        files.reload()


@pytest.mark.parametrize("text", ["", "{", "\0" * 4096, '{"kind": "open", "uuid": "u"'])
def test_a_journal_whose_first_line_was_cut_is_cleared(files: Files, text: str) -> None:
    files.path.parent.mkdir(parents=True)
    files.path.write_text(text)
    assert clear_if_torn(files.path)
    assert not files.path.exists()


def test_a_journal_with_a_first_line_or_a_run_is_not_cleared(files: Files) -> None:
    journal = files.open()
    assert is_held(files.path)
    assert not clear_if_torn(files.path)
    del journal
    assert not is_held(files.path)
    assert not clear_if_torn(files.path)
    assert files.path.exists()


def test_a_run_whose_journal_is_cleared_as_it_is_made_changes_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Journal.claim

    def cleared_first(self: Journal) -> None:
        self.path.unlink()
        claim(self)

    monkeypatch.setattr(Journal, "claim", cleared_first)
    with pytest.raises(RefusalError):
        files.open()


def test_a_line_that_the_disk_takes_in_part_leaves_nothing(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, write = files.open(), os.write
    before = files.path.read_bytes()

    def full(descriptor: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[:-10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(AutotuneError, match="No space left"):
            journal.writing(files.md / "stripe_cache_size", "4096")
    assert files.path.read_bytes() == before


def test_a_scratch_folder_that_is_removed_is_nothing_to_restore(files: Files) -> None:
    journal = files.open()
    files.root.chmod(0o700)
    heard: list[str] = []
    how = (1 << 20, "ext4", journal, lambda _: None, Written(), heard.append)
    with scratch_file(files.root, *how) as file:
        assert files.reload().record.scratch == [str(file.path.parent)]
    assert files.reload().record.scratch == []
    assert not heard


@pytest.mark.parametrize("kept", [True, False])
def test_a_signal_leaves_the_scratch_folder_to_the_restore_unless_that_has_been(
    files: Files, kept: bool
) -> None:
    """Who stops a container kills it ten seconds later: the settings go back first."""
    files.root.chmod(0o700)
    journal = files.open()
    how = (1 << 20, "ext4", journal, lambda _: None, Written(), print)
    folders = []

    def stopped() -> None:
        with scratch_file(files.root, *how) as file:
            folders.append(file.path.parent)
            if kept:
                journal.close()
            raise SignalledError("Stopped.")

    with pytest.raises(SignalledError):
        stopped()
    assert [folder.exists() for folder in folders] == [not kept]
    assert restore(journal, files.root).complete
    assert not folders[0].exists()


def test_what_cannot_be_removed_is_said_once_the_journal_is_gone(files: Files) -> None:
    files.root.chmod(0o700)
    for cleared in (False, True):
        heard: list[str] = []
        journal = files.open()
        how = (1 << 20, "ext4", journal, lambda _: None, Written(), heard.append)
        with scratch_file(files.root, *how) as file:
            (file.path.parent / "precious").write_text("x")
            if cleared:
                journal.close()
        assert len(heard) == cleared
        assert (file.path.parent / "precious").exists()
        journal.close()


def test_the_journal_is_for_its_owner_alone(files: Files) -> None:
    files.open()
    assert files.path.stat().st_mode & 0o077 == 0


def test_every_line_is_json(files: Files) -> None:
    journal = files.open()
    journal.checking(True)
    journal.scratch(files.root / ".autotune-x\n{")
    for line in files.path.read_text().splitlines():
        json.loads(line)


def test_the_cache_goes_back_only_after_a_reshape(tmp_path: Path) -> None:
    """Made too small meanwhile, it stops the reshape for good, and the array with it."""
    cache, position = tmp_path / "md/stripe_cache_size", tmp_path / "md/reshape_position"
    cache.parent.mkdir()
    cache.write_text("256\n")
    position.write_text("none\n")
    path, told = journal_path(tmp_path / "state", UUID), list[str]()
    with guarded(new_journal(path, UUID, "/dev/md0", [cache]), told.append) as guardian:
        guardian.journal.writing(cache, "4096")
        cache.write_text("4096\n")
        position.write_text("204800\n")
    assert "goes back by itself" in told[0]
    assert not path.exists()
    time.sleep(1)
    assert cache.read_text() == "4096\n"
    position.write_text("none\n")
    deadline = time.monotonic() + 20
    while open_journals(tmp_path / "state") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert cache.read_text() == "256"


def test_a_cache_that_is_back_does_not_wait_with_the_threads(tmp_path: Path) -> None:
    md = tmp_path / "md"
    md.mkdir()
    files = {md / "group_thread_cnt": "4", md / "stripe_cache_size": "4096"}
    for file in files:
        file.write_text("0\n" if file.name == "group_thread_cnt" else "256\n")
    (md / "sync_action").write_text("recover\n")
    journal = new_journal(journal_path(tmp_path / "state", UUID), UUID, "/dev/md0", files)
    for file, text in files.items():
        journal.writing(file, text)
        file.write_text(f"{text}\n")
    assert restore(journal).waiting
    (path,) = open_journals(tmp_path / "state")
    assert list(Journal.load(path).record.originals) == [str(md / "group_thread_cnt")]
    assert (md / "stripe_cache_size").read_text() == "256"


def test_a_journal_that_was_there_stays_where_no_file_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel says so before it looks whether there is one."""
    path = journal_path(tmp_path, UUID)
    path.parent.mkdir(parents=True)
    path.write_text("an earlier run's")

    opens = Path.open

    def full(file: Path, mode: str = "r", *more: Any, **others: Any) -> Any:
        if mode == "x":
            raise OSError(errno.EMFILE, "Too many open files")
        return opens(file, mode, *more, **others)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(AutotuneError, match="Too many open files"):
        new_journal(path, UUID, "/dev/md0", ())
    monkeypatch.undo()
    assert path.read_text() == "an earlier run's"


def test_a_journal_with_a_whole_first_line_that_cannot_be_read_is_damaged(files: Files) -> None:
    files.path.parent.mkdir(parents=True)
    files.path.write_text("null\n")
    with pytest.raises(AutotuneError, match="is damaged, so what was there before is not known"):
        files.reload()


def test_a_line_after_one_that_was_cut_short_counts(files: Files) -> None:
    cache, queue = files.md / "stripe_cache_size", files.queue / "nr_requests"
    journal = files.open()
    journal.writing(queue, "128")
    files.path.write_bytes(files.path.read_bytes()[:-5])
    journal = files.reload()
    journal.writing(cache, "512")
    assert files.reload().record.ours == {str(cache): ["512"]}


@pytest.mark.parametrize(
    ("after", "over"),
    [
        (b"", True),
        (b'{"kind": "removed", "path": "/mnt/x"}\n', True),
        (b'{"kind": "rem', True),
        (b'{"kind": "removed", "path": "/mnt/x"}\n{"kind": "write"}\n', False),
    ],
)
def test_what_is_kept_stays_so_once_the_scratch_folder_is_gone(after: bytes, over: bool) -> None:
    assert is_over(b'{"uuid": "u"}\n' + OVER + after) == over
    assert not is_over(b'{"uuid": "u"}\n' + after)
