"""Putting back what a journal says, on files that stand for sysfs."""

import dataclasses
import errno
import functools
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from journal_files import UUID, Files, files, resetting

from autotune.errors import AutotuneError, InfeasibleError, RefusalError
from autotune.measure.scratch import remove
from autotune.safety import new_journal as new_journal_module
from autotune.safety import own_check, restore_file, separate_process
from autotune.safety import record as record_module
from autotune.safety import restore as restore_module
from autotune.safety.applied import Stopped, set_over
from autotune.safety.deferred_restore import settle
from autotune.safety.handed_over import keep, let_wait
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, open_journals, waiting_path
from autotune.safety.record import Record
from autotune.safety.restore import restore
from autotune.safety.scratch_folder import moved_to
from autotune.safety.shared_folder import kernel_mark
from autotune.system import sysfs
from autotune.system.disk_originals import Note, noted_for, take_down
from autotune.system.mountinfo import mounted

__all__ = ["files", "resetting"]


def test_what_was_changed_goes_back_and_the_journal_with_it(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "256"
    assert outcome.restored == [str(cache)]
    assert not files.path.exists()


@pytest.mark.parametrize("hidden", ["sys", "proc"])
def test_what_cannot_be_seen_is_not_taken_for_gone(files: Files, hidden: str) -> None:
    """As in a chroot, or where something else is mounted over /sys."""
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    (files.root / hidden).rename(files.root / "away")
    outcome = restore(files.reload(), files.root)
    assert "is not there; mount /sys and /proc" in outcome.failed[0]
    assert files.path.exists()
    (files.root / "away").rename(files.root / hidden)
    assert restore(files.reload(), files.root).complete
    assert sysfs.read(cache) == "256"


def store_late(path: Path, text: str) -> threading.Event:
    """A store that the kernel holds back, as while a disk hangs; it comes through once this is
    set."""
    answers = threading.Event()

    def store() -> None:
        answers.wait(20)
        path.write_text(text)

    sysfs._stores[path] = thread = threading.Thread(target=store)
    thread.start()
    return answers


def test_what_a_store_of_ours_has_not_reached_yet_is_not_taken_for_put_back(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    journal = files.open()
    journal.writing(cache, "4096")
    answers = store_late(cache, "4096")
    threading.Timer(0.5, answers.set).start()
    outcome = restore(journal, files.root)
    assert answers.is_set()
    assert outcome.complete
    assert sysfs.read(cache) == "256"
    assert not files.path.exists()


def test_a_journal_stays_until_a_store_of_its_process_is_through(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guardian waits for it: the process is dead, but for the thread that the kernel keeps."""
    cache = files.md / "stripe_cache_size"
    journal = files.open()
    files.write(journal, cache, "4096")
    journal.record.pid += 1
    monkeypatch.setattr(restore_file, "_hangs", lambda pid: pid == os.getpid() + 1)
    outcome = restore(journal, files.root)
    assert outcome.late
    # It may hang elsewhere, as in its own state folder: what can go back does.
    assert sysfs.read(cache) == "256"
    assert not outcome.complete
    assert files.path.exists()
    cache.write_text("4096")
    monkeypatch.setattr(restore_file, "_hangs", lambda _: False)
    outcome = restore(journal, files.root)
    assert not outcome.late
    assert sysfs.read(cache) == "256"
    assert not files.path.exists()


def test_an_array_that_goes_while_it_is_put_back_keeps_nothing_else_from_going_back(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = files.open()
    length = files.queue / "nr_requests"
    speeds = [files.md / "sync_speed_min", files.md / "sync_speed_max"]
    for path, value in zip((*speeds, length), ("2000", "9000", "32"), strict=True):
        files.write(journal, path, value)
    before, look = journal.record.originals[str(length)], restore_module._found

    def goes(*words: Any) -> dict[Path, str]:
        seen = look(*words)
        shutil.rmtree(files.md, ignore_errors=True)
        return seen

    monkeypatch.setattr(restore_module, "_found", goes)
    outcome = restore(files.reload(), files.root)
    assert outcome.restored == [str(length)]
    assert sysfs.read(length) == before


def test_what_is_the_arrays_own_goes_back_before_a_disk_is_asked(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that hangs lets nobody read its files, and a rebuild waits under the limit of a trial."""
    journal = files.open()
    high, length = files.md / "sync_speed_max", files.queue / "nr_requests"
    files.write(journal, length, "32")
    files.write(journal, high, "1001")
    look, then = sysfs.original, []

    def original(path: Path) -> str:
        if path == length:
            then.append(sysfs.value(high))
        return look(path)

    monkeypatch.setattr(sysfs, "original", original)
    restore(files.reload(), files.root)
    assert then[0] == "200000"


@pytest.mark.parametrize(("lowered", "left"), [("41", "64"), ("64", "64"), ("200", "200")])
def test_a_depth_that_the_kernel_has_lowered_is_put_back(
    files: Files, monkeypatch: pytest.MonkeyPatch, lowered: str, left: str
) -> None:
    """Up to what was stored last the kernel raises it again; more, somebody else has set."""
    depth = files.root / "sys/block/sda/device/queue_depth"
    depth.parent.mkdir()
    depth.write_text("64\n")
    journal = new_journal(files.path, UUID, "/dev/md0", [depth], files.root)
    files.write(journal, depth, "128")
    journal.settled()
    depth.write_text(f"{lowered}\n")
    stored: list[str] = []
    true_write = sysfs.write
    monkeypatch.setattr(
        sysfs, "write", lambda path, text: (stored.append(text), true_write(path, text))
    )
    assert restore(journal, files.root).complete
    assert sysfs.read(depth) == left
    assert stored == [left]


def test_what_a_takeover_to_raid_0_hides_is_not_gone(files: Files) -> None:
    """With another level it is in force again."""
    high, low, cache = (
        files.md / name for name in ("sync_speed_max", "sync_speed_min", "stripe_cache_size")
    )
    journal = files.open()
    files.write(journal, high, "1001 (local)")
    files.write(journal, cache, "512")
    journal.settled()
    (files.md / "array_state").write_text("clean\n")
    for path in (high, low, cache):
        path.unlink()
    outcome = restore(files.reload(), files.root)
    assert [text.split()[0] for text in outcome.failed] == ["sync_speed_max"]
    assert outcome.gone == [str(cache)], "the other one cannot be seen, but was not changed"
    high.write_text("1001 (local)\n")
    assert restore(files.reload(), files.root).complete
    assert sysfs.value(high) == "200000"


def test_a_bound_of_a_check_that_a_takeover_to_raid_0_hides_is_not_gone(files: Files) -> None:
    """It was not announced as a setting is. The next recovery would stand still there."""
    journal, bound = files.open(), files.md / "sync_min"
    journal.checking(True, start=0)
    journal.store(bound, "4096")
    (files.md / "array_state").write_text("clean\n")
    (files.md / "sync_action").unlink()
    bound.unlink()
    outcome = restore(files.reload(), files.root)
    assert [text.split()[0] for text in outcome.failed] == ["sync_min"]
    assert files.path.exists()
    (files.md / "sync_action").write_text("idle\n")
    bound.write_text("4096\n")
    assert restore(files.reload(), files.root).complete
    assert bound.read_text() == "0"


def test_of_an_array_that_was_stopped_just_now_nothing_is_hidden(files: Files) -> None:
    """Its folder stays until the last one has closed it."""
    journal, high = files.open(), files.md / "sync_speed_max"
    files.write(journal, high, "1001 (local)")
    journal.settled()
    (files.md / "array_state").write_text("clear\n")
    high.unlink()
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert str(high) in outcome.gone


def test_what_cannot_wait_for_a_sync_is_told(files: Files) -> None:
    """The journal of an earlier restore that waits is damaged."""
    journal, cache = files.open(), files.md / "stripe_cache_size"
    files.write(journal, cache, "512")
    journal.settled()
    (files.md / "reshape_position").write_text("4096\n")
    (files.md / "sync_action").write_text("reshape\n")
    waiting = waiting_path(files.path)
    waiting.write_text("damaged\n")
    outcome = restore(files.reload(), files.root)
    assert outcome.waiting
    assert any(str(waiting) in text or "journal" in text for text in outcome.failed)


def test_a_value_that_followed_the_system_follows_it_again(files: Files) -> None:
    low = files.md / "sync_speed_min"
    files.write(files.open(), low, "30000")
    restore(files.reload(), files.root)
    assert sysfs.read(low) == "system"


def test_what_follows_from_our_writes_is_ours(files: Files) -> None:
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    (files.queue / "nr_requests").write_text("256")
    journal.settled()
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(files.queue / "nr_requests") == "64"
    assert not outcome.foreign


@pytest.mark.parametrize("full", [False, True])
def test_what_the_scheduler_resets_on_the_way_back_is_put_back_too(
    resetting: Files, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    """On a full disk, too, which takes no note of the switch."""
    files = resetting
    requests = files.queue / "nr_requests"
    requests.write_text("500")
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    requests.write_text("64")
    journal.settled()
    del journal

    def takes_nothing(*_: object) -> None:
        raise AutotuneError("No space left on device")

    if full:
        monkeypatch.setattr(Journal, "_append", takes_nothing)
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(requests) == "500"
    assert not outcome.foreign


def test_what_cannot_be_read_after_the_scheduler_is_back_is_no_failure(
    resetting: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As wbt_lat_usec, once throttling is off."""
    files, read = resetting, sysfs.original
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    journal.settled()
    del journal
    failed = []

    def original(path: Path) -> str:
        back = read(files.queue / "scheduler") == "none"
        if path.name == "nr_requests" and back and not failed:
            failed.append(path)
            raise OSError(errno.EINVAL, "Invalid argument")
        return read(path)

    monkeypatch.setattr(sysfs, "original", original)
    outcome = restore(files.reload(), files.root)
    assert failed, "it was looked at"
    assert (outcome.failed, str(files.queue / "scheduler") in outcome.restored) == ([], True)


def test_a_kill_while_the_scheduler_goes_back_loses_nothing_that_it_resets(
    resetting: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one to restore finds what the kernel has set, and not somebody else."""
    files = resetting
    requests = files.queue / "nr_requests"
    requests.write_text("500")
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    journal.settled()
    del journal
    write = sysfs.write

    def killed(path: Path, text: str, *rest: float) -> None:
        write(path, text, *rest)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sysfs, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            restore(files.reload(), files.root)
    assert sysfs.read(requests) != "500"
    outcome = restore(files.reload(), files.root)
    assert outcome.foreign == []
    assert sysfs.read(requests) == "500"


def test_what_somebody_has_set_of_what_a_scheduler_resets_stays(resetting: Files) -> None:
    files = resetting
    requests = files.queue / "nr_requests"
    requests.write_text("500")
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    journal.settled()
    requests.write_text("77")
    del journal
    outcome = restore(files.reload(), files.root)
    assert len(outcome.foreign) == 1
    assert sysfs.read(requests) == "77"


@pytest.mark.parametrize("found", ["", "500"])
def test_what_a_scheduler_was_set_to_comes_back_with_it(resetting: Files, found: str) -> None:
    """Whether another one is in force when the tuner dies, or the same one, switched back."""
    files = resetting
    (files.queue / "scheduler").write_text("[mq-deadline] none bfq")
    files.own.mkdir()
    expire, elsewhere = files.own / "read_expire", files.own / "low_latency"
    expire.write_text("250")
    files.paths += [expire, elsewhere]
    journal = files.open()
    assert journal.record.originals[str(elsewhere)] == "", "there is none under mq-deadline"
    journal.writing(files.queue / "scheduler", "bfq")
    journal.store(files.queue / "scheduler", "bfq")
    assert not expire.exists()
    journal.settled()
    if found:
        journal.writing(files.queue / "scheduler", "mq-deadline")
        journal.store(files.queue / "scheduler", "mq-deadline")
        journal.settled()
    else:
        files.own.mkdir()
        files.write(journal, elsewhere, "0")
    del journal
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(expire) == "250"
    assert not elsewhere.exists()
    assert (outcome.foreign, outcome.failed, outcome.gone) == ([], [], [])
    assert not files.path.exists()


def test_a_scheduler_that_somebody_else_chose_takes_its_settings_along(resetting: Files) -> None:
    files = resetting
    (files.queue / "scheduler").write_text("[mq-deadline] none bfq")
    files.own.mkdir()
    expire = files.own / "read_expire"
    expire.write_text("250")
    files.paths += [expire]
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    journal.settled()
    del journal
    shutil.rmtree(files.own)
    (files.queue / "scheduler").write_text("mq-deadline [none] bfq")
    outcome = restore(files.reload(), files.root)
    assert sysfs.value(files.queue / "scheduler") == "none"
    assert (len(outcome.foreign), outcome.failed) == (1, [])
    assert not files.path.exists(), "nothing is left to put back"


def test_a_scratch_folder_that_stays_bars_nobody(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a filesystem that became read-only, or whose disks hang."""
    cache, folder = files.md / "stripe_cache_size", files.root / ".autotune-1"
    folder.mkdir()
    journal = files.open()
    files.write(journal, cache, "4096")
    journal.scratch(folder)
    journal.release()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr("autotune.safety.own_scratch.remove", refuse)
        outcome = restore(files.reload(), files.root)
        settle(files.path, files.root)
    assert outcome.failed == [f"{folder}: Read-only file system"]
    assert sysfs.read(cache) == "256"
    # Another one comes, ends the same, and the first one is not forgotten.
    other = files.root / ".autotune-2"
    other.mkdir()
    again = files.open()
    again.scratch(other)
    again.release()
    with monkeypatch.context() as patch:
        patch.setattr("autotune.safety.own_scratch.remove", refuse)
        restore(files.reload(), files.root)
    (path,) = open_journals(files.root / "state")
    assert set(Journal.load(path).record.scratch) == {str(folder), str(other)}
    # Set meanwhile, it is none of the run's business.
    (files.md / "sync_min").write_text("8192")
    outcome = restore(Journal.load(path), files.root)
    assert not outcome.failed
    assert not outcome.foreign
    assert not folder.exists()
    assert not other.exists()
    assert not open_journals(files.root / "state")


def test_during_a_reshape_its_bounds_are_left_to_mdadm(files: Files) -> None:
    """It stops the reshape at sync_max to make a backup of what comes next."""
    bound, action = files.md / "sync_max", files.md / "sync_action"
    bound.write_text("max")
    files.paths.append(bound)
    journal = files.open()
    journal.checking(True)
    journal.checking(False, moved=True)
    action.write_text("reshape")
    bound.write_text("8192")
    (files.md / "reshape_position").write_text("4096")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(bound) == "8192"
    assert not outcome.failed
    assert outcome.waiting


MAY = "000001ffffffffff"


def mdadm_grows(
    files: Files, uid: int = 0, program: str = "/usr/sbin/mdadm (deleted)", may: str = MAY
) -> Path:
    """A process of it, which ends with this file."""
    command = files.root / "proc/123/cmdline"
    command.parent.mkdir()
    told = f"Name:\tmdadm\nUid:\t{uid}\t0\t0\t0\nCapEff:\t{may}\n"
    command.with_name("status").write_text(told)
    command.with_name("comm").write_text("mdadm\n")
    command.with_name("exe").symlink_to(program)
    command.write_text("/sbin/mdadm\0--grow\0/dev/md0\0--chunk=32\0")
    return command


@pytest.mark.parametrize("left", ["2000 (local)", "200000 (local)"])
@pytest.mark.parametrize("begun", [False, True])
def test_what_mdadm_has_raised_for_a_reshape_waits_for_its_end(
    files: Files, left: str, begun: bool
) -> None:
    """Then it puts back what it read at the start: ours. Killed before, it leaves what it set."""
    least, shape = files.md / "sync_speed_min", files.md / "reshape_position"
    command = mdadm_grows(files)
    files.write(files.open(), least, "2000")
    if begun:
        (files.md / "sync_action").write_text("reshape")
        shape.write_text("4096")
    least.write_text("200000 (local)")
    outcome = restore(files.reload(), files.root)
    assert not outcome.foreign
    assert "sync_speed_min of /dev/md0 goes back by itself once the" in outcome.waiting[0]
    assert sysfs.read(least) == "200000 (local)"
    (files.md / "sync_action").write_text("idle")
    shape.write_text("none")
    waiting = Journal.load(waiting_path(files.path))
    assert restore(waiting, files.root).waiting
    command.unlink()
    least.write_text(left)
    assert restore(Journal.load(waiting.path), files.root).complete
    assert sysfs.read(least) == "system"
    assert not open_journals(files.root / "state")


@pytest.mark.parametrize(
    ("later", "stays"), [("50000 (local)", "50000 (local)"), ("2000 (local)", "system")]
)
def test_what_somebody_has_raised_during_a_reshape_stays_unless_mdadm_undoes_it(
    files: Files, later: str, stays: str
) -> None:
    least = files.md / "sync_speed_min"
    files.write(files.open(), least, "2000")
    (files.md / "sync_action").write_text("reshape")
    (files.md / "reshape_position").write_text("4096")
    least.write_text("50000 (local)")
    outcome = restore(files.reload(), files.root)
    assert outcome.foreign == [f"{least} reads 50000, which was set after that"]
    (files.md / "sync_action").write_text("idle")
    (files.md / "reshape_position").write_text("none")
    least.write_text(later)
    assert restore(Journal.load(waiting_path(files.path)), files.root).complete
    assert sysfs.read(least) == stays
    assert not open_journals(files.root / "state")


def test_what_went_back_at_once_during_a_reshape_is_looked_at_again(files: Files) -> None:
    """mdadm may have read it just before."""
    least, command = files.md / "sync_speed_min", mdadm_grows(files)
    files.write(files.open(), least, "2000")
    (files.md / "sync_action").write_text("reshape")
    (files.md / "reshape_position").write_text("4096")
    outcome = restore(files.reload(), files.root)
    assert outcome.restored == [str(least)]
    assert "is looked at again after the reshape" in outcome.waiting[0]
    (files.md / "sync_action").write_text("idle")
    (files.md / "reshape_position").write_text("none")
    least.write_text("1000 (system)")
    waiting = Journal.load(waiting_path(files.path))
    assert restore(waiting, files.root).waiting
    least.write_text("2000 (local)")
    command.unlink()
    assert restore(Journal.load(waiting.path), files.root).complete
    assert sysfs.read(least) == "system"


@pytest.mark.parametrize("device", ["/dev/md1", "/dev/md0"])
def test_a_reshape_of_another_array_is_none_of_this_one(files: Files, device: str) -> None:
    """And neither is what mdadm does but to change a shape."""
    least, command = files.md / "sync_speed_min", mdadm_grows(files)
    command.write_text(f"mdadm\0{'--grow' if device == '/dev/md1' else '--detail'}\0{device}\0")
    files.write(files.open(), least, "2000")
    least.write_text("200000 (local)")
    outcome = restore(files.reload(), files.root)
    assert outcome.foreign == [f"{least} reads 200000, which was set after that"]
    assert not outcome.waiting
    assert sysfs.read(least) == "200000 (local)"


@pytest.mark.parametrize(
    ("uid", "program", "may"),
    [
        (1000, "/tmp/mdadm", MAY),
        (0, "/usr/bin/sudo", MAY),
        # As root in a container has it.
        (0, "/tmp/mdadm", "00000000a80425fb"),
    ],
)
def test_what_only_calls_itself_mdadm_is_waited_for_by_nobody(
    files: Files, uid: int, program: str, may: str
) -> None:
    least, _ = files.md / "sync_speed_min", mdadm_grows(files, uid, program, may)
    files.write(files.open(), least, "2000")
    assert restore(files.reload(), files.root).complete
    assert sysfs.read(least) == "system"
    assert not open_journals(files.root / "state")


@pytest.mark.parametrize(("uid", "name"), [(1000, "mdadm"), (0, "nfsd")])
def test_the_words_of_others_which_may_never_come_are_not_asked_for(
    files: Files, monkeypatch: pytest.MonkeyPatch, uid: int, name: str
) -> None:
    """Where a fault of a process's memory hangs, so does whoever reads its command line."""
    least, command = files.md / "sync_speed_min", mdadm_grows(files, uid)
    command.with_name("comm").write_text(f"{name}\n")
    files.write(files.open(), least, "2000")
    read = Path.read_bytes

    def hangs(path: Path) -> bytes:
        assert path != command
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", hangs)
    assert restore(files.reload(), files.root).complete
    assert sysfs.read(least) == "system"


@pytest.mark.parametrize("now", ["2000 (local)", "200000 (local)"])
def test_a_reshape_that_ends_while_it_goes_back_is_looked_at_again(
    files: Files, monkeypatch: pytest.MonkeyPatch, now: str
) -> None:
    """mdadm puts back what it read, and ends, between two looks of ours."""
    least, command = files.md / "sync_speed_min", mdadm_grows(files)
    files.write(files.open(), least, "2000")
    least.write_text("200000 (local)")
    true_original = sysfs.original

    def ends(path: Path) -> str:
        text = true_original(path)
        if path == least and command.exists():
            command.unlink()
            least.write_text(now)
        return text

    monkeypatch.setattr(sysfs, "original", ends)
    restore(files.reload(), files.root)
    if sysfs.read(least) == "system":
        least.write_text("1000 (system)")
    if (waiting := waiting_path(files.path)).exists():
        assert restore(Journal.load(waiting), files.root).complete
    assert sysfs.original(least) == "system"
    assert not open_journals(files.root / "state")


@pytest.mark.parametrize(("later", "stays"), [("2000 (local)", "system"), ("9000", "9000")])
def test_what_somebody_sets_while_it_goes_back_is_judged_as_it_is_then(
    files: Files, monkeypatch: pytest.MonkeyPatch, later: str, stays: str
) -> None:
    least, cache = files.md / "sync_speed_min", files.md / "stripe_cache_size"
    journal = files.open()
    files.write(journal, cache, "4096")
    files.write(journal, least, "2000")
    least.write_text("5000 (local)")
    true_write = sysfs.write

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        true_write(path, text, timeout_s)
        if path == cache:
            least.write_text(later)

    monkeypatch.setattr(sysfs, "write", write)
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(least) == stays
    assert bool(outcome.foreign) is (stays == "9000")


def test_what_no_thread_can_be_had_for_goes_back_all_the_same(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a container may have no more processes."""
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")

    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    assert restore(files.reload(), files.root).complete
    assert sysfs.read(cache) == "256"


@pytest.mark.parametrize("stored", [False, True])
def test_a_store_that_was_announced_may_have_happened_or_not(files: Files, stored: bool) -> None:
    journal, cache = files.open(), files.md / "stripe_cache_size"
    files.write(journal, cache, "4096")
    journal.settled()
    journal.writing(cache, "8192")
    if stored:
        cache.write_text("8192")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "256"
    assert not outcome.foreign


def test_what_was_applied_before_a_reboot_is_no_original_after_it(files: Files) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    for boot in ("boot-1", "boot-2"):
        files.boot(boot)
        cache.write_text("256")
        journal = files.open()
        files.write(journal, cache, "4096")
        keep(journal, applied)
    restore(Journal.load(applied), files.root)
    assert sysfs.read(cache) == "256"


def test_a_profile_that_is_undone_but_for_its_scratch_folder_is_forgotten(files: Files) -> None:
    """What the owner sets from then on is theirs, be it the same."""
    limit, applied = files.queue / "nr_requests", applied_path(files.root / "state", UUID)
    folder = files.root / ".autotune-1"
    folder.mkdir()
    (folder / "theirs").touch()
    journal = files.open()
    take_down(limit, Note("64", "256", UUID))
    files.write(journal, limit, "256")
    journal.scratch(folder)
    keep(journal, applied)
    journal.release()
    applied.with_suffix(".json").write_text("{}")
    assert restore(Journal.load(applied), files.root).failed
    assert sysfs.read(limit) == "64"
    assert not list(applied.parent.iterdir())
    assert noted_for(UUID, files.root) == {}
    assert Journal.load(waiting_path(files.path)).record.scratch == [str(folder)]


def test_a_scratch_of_what_was_applied_before_a_reboot_is_not_forgotten(files: Files) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    folder = files.root / ".autotune-1"
    folder.mkdir()
    for boot in ("boot-1", "boot-2"):
        files.boot(boot)
        cache.write_text("256")
        journal = files.open()
        files.write(journal, cache, "4096")
        if boot == "boot-1":
            journal.scratch(folder)
        keep(journal, applied)
        # Killed here, nobody has removed it.
        journal.release()
    assert Journal.load(applied).record.scratch == [str(folder)]
    assert restore(Journal.load(applied), files.root).complete
    assert not folder.exists()


def test_a_check_of_ours_accounts_for_sync_min(files: Files) -> None:
    journal = files.open()
    journal.checking(True)
    (files.md / "sync_action").write_text("check")
    (files.md / "sync_min").write_text("123456")
    restore(files.reload(), files.root)
    assert sysfs.read(files.md / "sync_min") == "0"
    assert sysfs.read(files.md / "sync_action") == "idle"


@pytest.mark.parametrize(
    ("start", "now", "ours"),
    [(0, 0, True), (8196, 8192, True), (8192, 0, True), (0, 75_040, False), (8192, 144_000, False)],
)
def test_a_check_that_somebody_has_started_in_place_of_ours_goes_on(
    files: Files, start: int, now: int, ours: bool
) -> None:
    """Ours was ended, which leaves in sync_min how far it came; or goes on at 0 after its end."""
    bound = files.md / "sync_max"
    bound.write_text("max\n")
    files.paths.append(bound)
    journal = files.open()
    journal.checking(True, start=start)
    (files.md / "sync_action").write_text("check")
    (files.md / "sync_min").write_text(str(now))
    bound.write_text("192000")
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert sysfs.read(files.md / "sync_action") == ("idle" if ours else "check")
    assert sysfs.read(files.md / "sync_min") == ("0" if ours else str(now))
    # Who knows whose bound it is: a check that stands still would hold up a rebuild.
    assert sysfs.read(bound) == "max"
    said = "; ".join(outcome.foreign)
    assert ours == (said == "")
    assert ours or "its sync_max, 192000, may have been left by autotune" in said


@pytest.mark.parametrize(
    ("later_s", "parent", "ours"), [(5, 2, True), (3600, 2, False), (3600, 1, True)]
)
def test_a_check_that_began_after_ours_was_over_goes_on(
    files: Files, monkeypatch: pytest.MonkeyPatch, later_s: int, parent: int, ours: bool
) -> None:
    """As that of the distribution; ours leaves sync_min at 0 at its end. Anybody may call a process
    as the kernel calls its thread."""
    thread = files.root / "proc/77"
    thread.mkdir(parents=True)
    monkeypatch.setattr(own_check, "PROC", files.root / "proc")
    journal = files.open()
    journal.checking(True, start=0)
    ticks = int((time.clock_gettime(time.CLOCK_BOOTTIME) + later_s) * os.sysconf("SC_CLK_TCK"))
    (thread / "comm").write_text("md0_resync\n")
    (thread / "stat").write_text(f"77 (md0_resync) D {parent} {'0 ' * 17}{ticks} 0 0\n")
    (files.md / "sync_action").write_text("check")
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert sysfs.read(files.md / "sync_action") == ("idle" if ours else "check")
    assert bool(outcome.foreign) != ours


def test_md_s_main_thread_is_no_sync(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 5.17, both threads of an array with a long name are called the same."""
    monkeypatch.setattr(own_check, "PROC", files.root / "proc")
    for number, ticks in ((10, 100), (20, 9000)):
        thread = files.root / f"proc/{number}"
        thread.mkdir(parents=True)
        (thread / "comm").write_text("md_archive2019_\n")
        (thread / "stat").write_text(f"{number} (md_archive2019_) S 2 {'0 ' * 17}{ticks} 0 0\n")
    began_s = own_check._thread_began_s("md_archive2019")
    assert began_s == 9000 / os.sysconf("SC_CLK_TCK")


def test_a_failed_restore_goes_on_and_keeps_the_journal(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = files.open()
    files.write(journal, files.md / "stripe_cache_size", "4096")
    files.write(journal, files.queue / "nr_requests", "32")
    true_write = sysfs.write

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path.name == "stripe_cache_size":
            raise AutotuneError("EBUSY")
        true_write(path, text, timeout_s)

    monkeypatch.setattr(sysfs, "write", write)
    outcome = restore(files.reload(), files.root)
    assert [text for text in outcome.failed if "stripe_cache_size" in text]
    assert sysfs.read(files.queue / "nr_requests") == "64"
    assert open_journals(files.root / "state") == [files.path]


def test_a_journal_of_another_boot_is_void(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    files.boot("boot-2")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "4096"
    assert not outcome.restored
    assert not files.path.exists()


def test_a_container_that_was_started_anew_has_the_same_kernel(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, start_s = files.md / "stripe_cache_size", 1000.0
    for module in (new_journal_module, record_module):
        monkeypatch.setattr(module, "kernel_start_s", lambda _root: start_s)
    files.write(files.open(), cache, "4096")
    # Container managers give each a boot id of its own.
    files.boot("boot-2")
    start_s += 1.0
    assert restore(files.reload(), files.root).restored
    assert sysfs.read(cache) == "256"


def test_nor_does_a_step_of_the_clock_make_another_one_of_it() -> None:
    """A clock that is set right after the boot; and a kernel that is another one."""
    first = Record("u", "/dev/md0", "boot-1", 1, {}, 1000.0, kernel="mark")
    assert first.same_boot(Record("u", "/dev/md0", "boot-2", 1, {}, 5000.0, kernel="mark"))
    assert not first.same_boot(Record("u", "/dev/md0", "boot-2", 1, {}, 5000.0, kernel="other"))
    # Without a battery the clock starts alike at each boot.
    assert not first.same_boot(Record("u", "/dev/md0", "boot-2", 1, {}, 1001.0, kernel="other"))
    assert not first.same_boot(Record("u", "/dev/md0", "boot-2", 1, {}, 5000.0))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has that folder")
def test_a_kernel_has_one_mark() -> None:
    assert kernel_mark() == kernel_mark()


def test_files_that_are_gone_are_no_failure(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    cache.unlink()
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert str(cache) in outcome.gone


def test_a_disk_that_vanishes_meanwhile_is_no_failure(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = files.queue / "nr_requests"
    files.write(files.open(), queue, "32")
    write = sysfs.write

    def vanishes(path: Path, text: str) -> None:
        if path == queue:
            shutil.rmtree(queue.parent.parent)
        write(path, text)

    monkeypatch.setattr(sysfs, "write", vanishes)
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert str(queue) in outcome.gone


def test_a_file_that_cannot_be_read_is_no_reason_to_leave_the_others(files: Files) -> None:
    cache, queue = files.md / "stripe_cache_size", files.queue / "nr_requests"
    journal = files.open()
    files.write(journal, cache, "4096")
    queue.unlink()
    queue.mkdir()
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "256"
    assert [text.split(":")[0] for text in outcome.failed] == [str(queue)]
    assert files.path.exists()


def test_a_kill_as_what_is_applied_is_replaced_loses_no_original(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    journal = files.open()
    files.write(journal, cache, "512")
    journal.settled()
    keep(journal, applied)
    journal = files.open()
    files.write(journal, cache, "1024")
    journal.settled()

    class KilledError(Exception):
        pass

    def killed(_journal: Journal) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "close", killed)
        with pytest.raises(KilledError):
            keep(journal, applied)
    # It says that it is over. The second one stays, until the user puts back what was before both.
    assert restore(files.reload(), files.root).complete
    assert sysfs.read(cache) == "1024"
    outcome = restore(Journal.load(applied), files.root)
    assert not outcome.foreign
    assert sysfs.read(cache) == "256"


@pytest.mark.parametrize("dismissed", [True, False])
def test_what_a_guardian_may_bring_back_counts_as_ours_until_it_is_dismissed(
    files: Files, dismissed: bool
) -> None:
    """It does so where its disk fails and the tuner is killed, though the second one is kept."""
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    for text in ("512", "1024"):
        journal = files.open()
        journal.watched = True
        files.write(journal, cache, text)
        journal.settled()
        keep(journal, applied)
        if dismissed:
            journal.watched = False
            journal.settle_kept()
    sysfs.write(cache, "512")
    outcome = restore(Journal.load(applied), files.root)
    # Somebody else may have set it, once nothing of ours does.
    assert bool(outcome.foreign) == dismissed
    assert sysfs.read(cache) == ("512" if dismissed else "256")


def test_what_a_restore_that_was_cut_has_reset_is_ours_after_another_apply(
    resetting: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, applied = resetting, applied_path(resetting.root / "state", UUID)
    scheduler, length = files.queue / "scheduler", files.queue / "nr_requests"
    journal = files.open()
    for path, text in ((scheduler, "bfq"), (length, "64")):
        journal.writing(path, text)
        sysfs.write(path, text)
    journal.settled()
    keep(journal, applied)
    true_write = sysfs.write

    def cut(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path == length:
            raise KeyboardInterrupt
        true_write(path, text, timeout_s)

    with monkeypatch.context() as patch:
        patch.setattr(sysfs, "write", cut)
        with pytest.raises(KeyboardInterrupt):
            restore(Journal.load(applied), files.root)
    assert sysfs.read(length) == "128"
    journal = files.open()
    files.write(journal, files.md / "stripe_cache_size", "512")
    journal.settled()
    keep(journal, applied)
    outcome = restore(Journal.load(applied), files.root)
    assert not outcome.foreign
    assert [sysfs.read(path) for path in (length, files.md / "stripe_cache_size")] == ["64", "256"]


def test_the_journal_waits_until_the_filesystem_of_the_scratch_is_mounted(files: Files) -> None:
    journal = files.open()
    folder = files.root / "mnt" / ".autotune-1"
    folder.parent.mkdir()
    journal.scratch(folder)
    assert Path(journal.record.mounts[str(folder)]).is_mount()
    text = files.path.read_text()
    mount = json.dumps(journal.record.mounts[str(folder)])
    files.path.write_text(text.replace(f'"mount": {mount}', f'"mount": "{folder.parent}"'))
    files.boot("boot-2")
    outcome = restore(files.reload(), files.root)
    assert "nothing is mounted" in outcome.failed[0]
    # The resync after a power cut is guarded all the same.
    guarding = files.open()
    guarding.close()
    (left,) = open_journals(files.root / "state")
    folder.mkdir()
    assert restore(Journal.load(left), files.root).complete
    assert not folder.exists()
    assert not left.exists()


def test_a_scratch_of_an_earlier_boot_is_not_forgotten_for_a_sync(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, bound, action = files.root / ".autotune-1", files.md / "sync_min", "sync_action"
    folder.mkdir()
    first = files.open()
    first.scratch(folder)
    first.release()

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as patch:
        patch.setattr("autotune.safety.own_scratch.remove", refuse)
        restore(files.reload(), files.root)
    files.boot("boot-2")
    journal = files.open()
    files.write(journal, bound, "8192")
    (files.md / action).write_text("recover")
    let_wait(journal)
    (left,) = open_journals(files.root / "state")
    record = Journal.load(left).record
    assert record.scratch == [str(folder)]
    assert record.originals[str(bound)] == "0"
    assert not record.devices


def test_a_removal_that_the_filesystem_does_not_keep_is_none(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on one that has just broken: the folder seems to be gone, and is back after a repair."""

    def broken(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    journal = files.open()
    folder = files.root / ".autotune-0123"
    journal.scratch(folder)
    monkeypatch.setattr("autotune.safety.own_scratch.remove", broken)
    assert not restore(files.reload(), files.root).complete
    monkeypatch.undo()
    path = waiting_path(files.path)
    folder.mkdir()
    assert restore(Journal.load(path), files.root).removed == [str(folder)]
    assert not folder.exists()


def test_a_removal_that_was_not_made_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the program is empty, in the midst of an upgrade."""
    (tmp_path / ".autotune-1").mkdir()
    (tmp_path / "empty.py").touch()
    monkeypatch.setattr(separate_process, "WORK", tmp_path / "empty.py")
    with pytest.raises(OSError, match="has not done so"):
        separate_process.remove(str(tmp_path), (".autotune-1", "scratch"), 10.0)
    monkeypatch.undo()
    separate_process.remove(str(tmp_path), (".autotune-1", "scratch"), 10.0)
    assert not (tmp_path / ".autotune-1").exists()


def test_nothing_is_removed_behind_a_link_that_has_taken_its_place(tmp_path: Path) -> None:
    theirs, folder = tmp_path / "theirs", tmp_path / ".autotune-1"
    theirs.mkdir()
    (theirs / "scratch").write_text("somebody's")
    folder.symlink_to(theirs)
    with pytest.raises(OSError, match="Not a directory"):
        remove(folder, 20)
    assert (theirs / "scratch").exists()
    folder.unlink()
    folder.mkdir()
    (folder / "scratch").touch()
    for _already_gone in (False, True):
        remove(folder, 20)
        assert not folder.exists()


def test_it_waits_too_while_another_folder_of_the_same_filesystem_does(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which a bind mount puts over a folder above it."""
    journal = files.open()
    parent = files.root / "above"
    parent.mkdir()
    journal.scratch(parent / ".autotune-1")
    monkeypatch.setattr("autotune.safety.own_scratch.mount_number", lambda path: path == parent)
    outcome = restore(files.reload(), files.root)
    assert f"is mounted over {parent}" in outcome.failed[0]
    monkeypatch.undo()
    (left,) = open_journals(files.root / "state")
    assert restore(Journal.load(left), files.root).complete


@pytest.mark.parametrize("copied", [False, True])
def test_the_journal_waits_while_another_filesystem_hides_the_scratch(
    files: Files, monkeypatch: pytest.MonkeyPatch, copied: bool
) -> None:
    """Also one that is a copy, with a folder of that name."""
    journal = files.open()
    folder = files.root / ".autotune-1"
    journal.scratch(folder)
    if copied:
        folder.mkdir()
    mounts, (place,) = mounted(), journal.record.mounts.values()
    (*_, here) = (mount for mount in mounts if mount.place == place)
    below = dataclasses.replace(here, device="0:4242")
    monkeypatch.setattr("autotune.safety.own_scratch.mounted", lambda: [below, *mounts])
    numbers = (files.root.stat().st_dev, os.makedev(0, 4242))
    own, other = (f'"device": {number},' for number in numbers)
    files.path.write_text(files.path.read_text().replace(own, other))
    outcome = restore(files.reload(), files.root)
    assert "another filesystem is mounted over" in outcome.failed[0]
    assert folder.exists() == copied
    (left,) = open_journals(files.root / "state")
    left.write_text(left.read_text().replace(other, own))
    assert restore(Journal.load(left), files.root).complete
    assert not left.exists()


@pytest.mark.parametrize("there", [False, True])
def test_a_scratch_is_removed_though_its_array_has_another_number_by_now(
    files: Files, there: bool
) -> None:
    """Where another filesystem is mounted instead, the journal waits."""
    journal = files.open()
    folder = files.root / ".autotune-1"
    journal.scratch(folder)
    if there:
        folder.mkdir()
    own = f'"device": {files.root.stat().st_dev},'
    gone = f'"device": {os.makedev(9, 1234)},'
    files.path.write_text(files.path.read_text().replace(own, gone))
    assert restore(files.reload(), files.root).complete == there
    assert not folder.exists()


@pytest.mark.parametrize("anew", [False, True], ids=["gone", "made anew"])
def test_a_scratch_whose_parent_was_renamed_is_found_and_removed(
    files: Files, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    folder = files.root / "mnt/one/.autotune-1"
    folder.mkdir(parents=True)
    files.open().scratch(folder)
    # The mount that these files are on may be large.
    near = functools.partial(moved_to, timeout_s=5.0)
    monkeypatch.setattr(
        "autotune.safety.own_scratch.moved_to",
        lambda folder, _mount: near(folder, f"{files.root}/mnt"),
    )
    moved = files.root / "mnt/two/.autotune-1"
    folder.parent.rename(moved.parent)
    if anew:
        folder.parent.mkdir()
    (moved / "scratch").write_bytes(b"s")
    outcome = restore(files.reload(), files.root)
    assert outcome.removed == [str(moved)]
    assert not moved.exists()
    assert not files.path.exists()


def test_a_scratch_is_found_where_else_its_filesystem_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where it was in a bind mount, which shows another folder by now."""
    bound, whole, other = (tmp_path / name for name in ("bound", "wh\r\u2028ole", "other"))
    for folder in (bound, whole / "renamed/.autotune-1", other / ".autotune-1"):
        folder.mkdir(parents=True)
    mounts = "".join(
        f"36 25 {number} / {where} rw - ext4 /dev/md0 rw\n"
        for number, where in (("9:0", whole), ("9:0", bound), ("9:1", other))
    )
    read = Path.read_bytes

    def told(path: Path) -> bytes:
        return mounts.encode() if path.name == "mountinfo" else read(path)

    monkeypatch.setattr(Path, "read_bytes", told)
    assert moved_to(bound / ".autotune-1", str(bound)) == whole / "renamed/.autotune-1"
    assert moved_to(bound / ".autotune-2", str(bound)) is None


def test_a_scratch_that_is_not_found_in_time_keeps_its_journal(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files.root / "mnt/one").mkdir(parents=True)
    files.open().scratch(files.root / "mnt/one/.autotune-1")
    (files.root / "mnt/one").rmdir()
    at_once = functools.partial(moved_to, timeout_s=-1.0)
    monkeypatch.setattr("autotune.safety.own_scratch.moved_to", at_once)
    (text,) = restore(files.reload(), files.root).failed
    assert "/mnt/one/.autotune-1: the folder that it was in is gone or has another name" in text
    assert "-name .autotune-1` and remove it, then delete the journal" in text
    assert len(open_journals(files.root / "state")) == 1


def test_a_scratch_of_a_folder_that_is_gone_is_looked_for_on_its_own_filesystem(
    tmp_path: Path,
) -> None:
    (tmp_path / "deep/er").mkdir(parents=True)
    (tmp_path / "deep/link").symlink_to(tmp_path)
    (tmp_path / "deep/.autotune-1").write_text("a file")
    assert moved_to(tmp_path / "gone/.autotune-1", str(tmp_path)) is None
    (tmp_path / "deep/er/.autotune-1").mkdir()
    found = moved_to(tmp_path / "gone/.autotune-1", str(tmp_path))
    assert found == tmp_path / "deep/er/.autotune-1"


def test_a_scratch_that_another_removes_meanwhile_is_removed(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As who was left to do so does once a filesystem answers again."""
    journal = files.open()
    folder = files.root / ".autotune-1"
    journal.scratch(folder)
    folder.mkdir()

    def too_late(folder: Path, timeout_s: float) -> None:
        folder.rmdir()
        remove(folder, timeout_s)

    monkeypatch.setattr("autotune.safety.own_scratch.remove", too_late)
    assert restore(files.reload(), files.root).complete
    assert not files.path.exists()


def test_what_is_kept_can_be_undone_even_after_a_second_time(files: Files) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    for text in ("4096", "8192"):
        journal = files.open()
        files.write(journal, cache, text)
        keep(journal, applied)
        assert not files.path.exists()
    restore(Journal.load(applied), files.root)
    assert sysfs.read(cache) == "256"
    assert not applied.exists()


def test_bounds_go_back_in_an_order_that_the_kernel_takes(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    low, high = files.md / "sync_min", files.md / "sync_max"
    low.write_text("0\n")
    high.write_text("4096\n")
    files.paths.append(high)
    journal, true_write = files.open(), sysfs.write
    journal.checking(True)
    low.write_text("8192\n")
    high.write_text("max\n")

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path == high and text != "max" and int(text) < int(sysfs.read(low)):
            raise InfeasibleError("EINVAL")
        true_write(path, text, timeout_s)

    monkeypatch.setattr(sysfs, "write", write)
    del journal
    outcome = restore(files.reload(), files.root)
    assert not outcome.failed
    assert (sysfs.read(low), sysfs.read(high)) == ("0", "4096")


@pytest.mark.parametrize("ended", [True, False])
def test_no_rebuild_stands_at_the_bound_of_a_check_that_found_another_one(
    files: Files, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """mdadm leaves one after a reshape, and md takes no lower bound while a sync runs."""
    low, high, action = (files.md / name for name in ("sync_min", "sync_max", "sync_action"))
    low.write_text("0")
    high.write_text("4096")
    files.paths.append(high)
    journal, true_write = files.open(), sysfs.write
    journal.checking(True)
    low.write_text("8192")
    files.write(journal, high, "16384")
    if ended:
        journal.checking(False, moved=True)
    action.write_text("recover")

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path in (low, high) and text != "max" and sysfs.read(action) == "recover":
            raise InfeasibleError("EBUSY")
        true_write(path, text, timeout_s)

    monkeypatch.setattr(sysfs, "write", write)
    outcome = restore(files.reload(), files.root)
    assert (sysfs.read(high), outcome.failed) == ("max", [])
    assert [text.split()[0] for text in outcome.waiting] == ["sync_min"]
    action.write_text("idle")
    (waiting,) = open_journals(files.root / "state")
    restore(Journal.load(waiting), files.root)
    assert (sysfs.read(low), sysfs.read(high)) == ("0", "max")
    assert not open_journals(files.root / "state")


def test_a_bound_that_is_not_ours_stays_during_a_rebuild(files: Files) -> None:
    bound = files.md / "sync_max"
    bound.write_text("4096")
    files.paths.append(bound)
    journal = files.open()
    files.write(journal, files.md / "stripe_cache_size", "4096")
    (files.md / "sync_action").write_text("recover")
    outcome = restore(files.reload(), files.root)
    assert (sysfs.read(bound), outcome.foreign, outcome.waiting) == ("4096", [], [])


def test_a_device_that_was_started_anew_is_left_as_it_is(files: Files) -> None:
    journal, cache, queue = (
        files.open(),
        files.md / "stripe_cache_size",
        files.queue / "nr_requests",
    )
    files.write(journal, cache, "4096")
    files.write(journal, queue, "256")
    files.md.parent.rename(files.md.parent.with_name("gone"))
    files.md.mkdir(parents=True)
    cache.write_text("4096\n")
    del journal
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "4096"
    assert sysfs.read(queue) == "64"
    assert str(cache) in outcome.gone


def test_what_is_applied_to_an_array_started_anew_has_other_originals(files: Files) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    for original in ("256", "384"):
        files.md.parent.rename(files.md.parent.with_name(f"before-{original}"))
        files.md.mkdir(parents=True)
        files.paths = [cache]
        cache.write_text(original)
        journal = files.open()
        files.write(journal, cache, "4096")
        keep(journal, applied)
    restore(Journal.load(applied), files.root)
    assert sysfs.read(cache) == "384"


def test_bounds_alone_do_not_bar_who_comes_next(files: Files) -> None:
    low, action = files.md / "sync_min", files.md / "sync_action"
    journal = files.open()
    journal.checking(True)
    journal.checking(False, moved=True)
    low.write_text("8192\n")
    journal.release()
    with pytest.raises(RefusalError, match="not put back"):
        files.open()
    action.write_text("recover\n")
    speeds = [files.md / "sync_speed_max"]
    new_journal(files.path, UUID, "/dev/md0", speeds, files.root).close()
    (waiting,) = open_journals(files.root / "state")
    action.write_text("idle\n")
    outcome = restore(Journal.load(waiting), files.root)
    assert outcome.restored == [str(low)]
    assert sysfs.read(low) == "0"
    assert not open_journals(files.root / "state")


def test_what_somebody_set_between_two_profiles_is_told_before_the_second_one(files: Files) -> None:
    """It is about to be lost: an undo brings back what was there before both."""
    cache, rate = files.md / "stripe_cache_size", files.md / "sync_speed_max"
    state = files.root / "state"
    array = Stopped(UUID, "md0", "/dev/md0", frozenset(), files.root)
    both = (cache, rate)
    assert set_over(array, both, {}, state) == []
    journal = files.open()
    for path, text in ((cache, "4096"), (rate, "100000")):
        files.write(journal, path, text)
    journal.settled()
    keep(journal, applied_path(state, UUID))
    assert set_over(array, both, {}, state) == []
    cache.write_text("768")
    (told,) = set_over(array, both, {}, state)
    assert told.startswith("stripe_cache_size reads 768, which autotune did not set;")
    assert "brings back 256" in told
    # It is a trial's value, where the command found its own there.
    assert set_over(array, both, {str(cache): "4096"}, state) == []
    cache.write_text("4096")
    assert set_over(array, both, {str(cache): "768"}, state) == [told]
    assert set_over(array, (rate,), {}, state) == []
    # As it was before.
    cache.write_text("256")
    assert set_over(array, both, {}, state) == []


def test_a_setting_of_a_scheduler_outlives_two_more_profiles(resetting: Files) -> None:
    """The second one switches the scheduler, so that the third one finds no such file."""
    files, applied = resetting, applied_path(resetting.root / "state", UUID)
    sysfs.write(files.queue / "scheduler", "mq-deadline")
    (files.own / "read_expire").write_text("770")
    files.paths.append(files.own / "read_expire")
    for path, text in (
        (files.own / "read_expire", "300"),
        (files.queue / "scheduler", "bfq"),
        (files.md / "stripe_cache_size", "512"),
    ):
        journal = files.open()
        journal.writing(path, text)
        sysfs.write(path, text)
        journal.settled()
        keep(journal, applied)
    restore(Journal.load(applied), files.root)
    assert sysfs.read(files.own / "read_expire") == "770"


def test_where_somebodys_check_begins_is_no_original(files: Files) -> None:
    """As mdcheck sets it, between two runs whose checks began at 0."""
    low, applied = files.md / "sync_min", applied_path(files.root / "state", UUID)
    for text in ("0", "4096"):
        low.write_text(text)
        journal = files.open()
        files.write(journal, low, "0")
        journal.settled()
        keep(journal, applied)
    assert Journal.load(applied).record.originals[str(low)] == "0"
