"""What a restore leaves alone, since somebody else set or made it."""

import os
import time
from pathlib import Path

import pytest
from journal_files import Files, files, resetting

from autotune.errors import InfeasibleError
from autotune.safety import own_check, own_scratch
from autotune.safety.journal import Journal
from autotune.safety.restore import restore
from autotune.system import sysfs

__all__ = ["files", "resetting"]


def test_a_value_that_somebody_else_set_is_left_and_named(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    cache.write_text("777")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "777"
    assert len(outcome.foreign) == 1
    assert "777" in outcome.foreign[0]
    assert not files.path.exists()


def test_a_value_that_a_trial_had_tried_is_somebody_elses_once_it_was_replaced(
    files: Files,
) -> None:
    journal, cache = files.open(), files.md / "stripe_cache_size"
    for text in ("4096", "8192"):
        files.write(journal, cache, text)
        journal.settled()
    cache.write_text("4096")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "4096"
    assert len(outcome.foreign) == 1


def test_what_somebody_set_beside_our_writes_stays_though_the_scheduler_resets_it(
    resetting: Files,
) -> None:
    files = resetting
    requests = files.queue / "nr_requests"
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    journal.settled()
    requests.write_text("48")
    files.write(journal, files.md / "stripe_cache_size", "4096")
    journal.settled()
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(requests) == "48"
    assert sysfs.value(files.queue / "scheduler") == "none"
    assert [text for text in outcome.foreign if "nr_requests reads 48" in text]


def test_what_somebody_sets_after_a_restore_that_was_killed_stays(
    resetting: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed behind its switch of the scheduler, with the queue length still to be put back."""
    files, write, requests = resetting, sysfs.write, resetting.queue / "nr_requests"
    requests.write_text("500")
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    files.write(journal, requests, "24")
    journal.settled()
    del journal

    def killed(path: Path, text: str, *rest: float) -> None:
        if path == requests:
            raise KeyboardInterrupt
        write(path, text, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(sysfs, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            restore(files.reload(), files.root)
    assert sysfs.read(requests) == "128", "as the switch has left it"
    requests.write_text("99")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(requests) == "99"
    assert ["reads 99" in line for line in outcome.foreign] == [True]


def test_what_somebody_sets_while_the_scheduler_goes_back_is_not_undone_by_what_he_set_before(
    resetting: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, effect, requests = resetting, Journal.took_effect, resetting.queue / "nr_requests"
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    files.write(journal, requests, "24")
    journal.settled()
    del journal
    requests.write_text("98")

    def meanwhile(journal: Journal, path: Path) -> None:
        effect(journal, path)
        requests.write_text("99")

    monkeypatch.setattr(Journal, "took_effect", meanwhile)
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(requests) == "99"
    assert ["reads 99" in line for line in outcome.foreign] == [True]


@pytest.mark.parametrize(("reads", "back"), [("500", "770"), ("300", "300")])
def test_what_goes_with_a_scheduler_comes_back_though_somebody_switched_it_back(
    resetting: Files, reads: str, back: str
) -> None:
    files = resetting
    scheduler, expire = files.queue / "scheduler", files.own / "read_expire"
    scheduler.write_text("[mq-deadline] none kyber")
    files.own.mkdir()
    expire.write_text("770")
    files.paths += [expire]
    journal = files.open()
    files.write(journal, scheduler, "kyber")
    journal.settled()
    # Without our switch, his would have changed nothing.
    scheduler.write_text("[mq-deadline] none kyber")
    files.own.mkdir(exist_ok=True)
    expire.write_text(reads)
    restore(files.reload(), files.root)
    assert sysfs.read(expire) == back


def test_another_array_that_has_the_name_now_is_left_alone(files: Files) -> None:
    cache, queue = files.md / "stripe_cache_size", files.queue / "nr_requests"
    journal = files.open()
    files.write(journal, cache, "4096")
    files.write(journal, queue, "256")
    journal.checking(True)
    (files.md / "sync_action").write_text("check")
    (files.md / "metadata_version").write_text("1.2")
    (files.md / "uuid").write_text("00000000-0000-0000-0000-000000000001")
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert str(cache) in outcome.gone
    assert sysfs.read(cache) == "4096"
    assert sysfs.read(files.md / "sync_action") == "check"
    # The disks are what they were.
    assert sysfs.read(queue) == "64"


def test_only_folders_of_ours_are_removed(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    # It would look through the whole filesystem for what the link stands in the place of.
    monkeypatch.setattr(own_scratch, "moved_to", lambda *_: None)
    ours, theirs = files.root / ".autotune-1", files.root / "precious"
    link = files.root / ".autotune-2"
    for folder in (ours, theirs):
        folder.mkdir()
        (folder / "scratch").write_text("x")
    link.symlink_to(theirs)
    journal = files.open()
    for folder in (ours, theirs, link):
        journal.scratch(folder)
    restore(files.reload(), files.root)
    assert not ours.exists()
    assert (theirs / "scratch").exists()


def test_what_is_not_ours_in_a_folder_of_ours_stays(files: Files) -> None:
    folder = files.root / ".autotune-1"
    folder.mkdir()
    (folder / "precious").write_text("x")
    files.open().scratch(folder)
    outcome = restore(files.reload(), files.root)
    assert (folder / "precious").exists()
    assert len(outcome.failed) == 1


@pytest.mark.parametrize(
    ("moved", "action", "theirs"),
    [
        (False, "check", True),
        (False, "idle", True),
        # Something else took the array over as our check ended.
        (True, "idle", False),
        (True, "check", True),
    ],
)
def test_the_bounds_of_a_check_are_ours_only_if_ours_left_them_moved(
    files: Files, moved: bool, action: str, theirs: bool
) -> None:
    low = files.md / "sync_min"
    journal = files.open()
    journal.checking(True)
    journal.checking(False, moved=moved)
    low.write_text("20480")
    (files.md / "sync_action").write_text(action)
    assert len(restore(files.reload(), files.root).foreign) == theirs
    assert sysfs.read(low) == ("20480" if theirs else "0")


def test_where_a_check_got_to_that_somebody_froze_goes_back_though_it_is_noted_late(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a kill, too: md says "frozen" at once, and stores it at the end of its thread."""
    files.open().checking(True)
    completed, low = files.md / "sync_completed", files.md / "sync_min"
    (files.md / "sync_action").write_text("frozen")
    completed.write_text("20480 / 2000000")

    def thread_ends(_seconds: float) -> None:
        completed.write_text("none")
        low.write_text("20480")

    monkeypatch.setattr("autotune.safety.own_check.time.sleep", thread_ends)
    assert restore(files.reload(), files.root).complete
    assert sysfs.read(low) == "0"


def test_a_check_that_does_not_end_is_ours_still(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk hangs. The recovery that follows must not stop at the check's bound, nor is what md
    begins once the disk answers somebody else's check."""
    journal, boot = files.open(), time.CLOCK_BOOTTIME
    monkeypatch.setattr(own_check, "PROC", files.root / "proc")
    began_s = time.clock_gettime(boot)
    with monkeypatch.context() as patch:
        patch.setattr(time, "clock_gettime", lambda _: began_s - 3600)
        journal.checking(True)
    md, taken = files.md, sysfs.write
    for name, text in {"sync_action": "check", "sync_max": "4096", "sync_min": "2048"}.items():
        (md / name).write_text(text)

    def hanging(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if text == "idle" or path.name == "sync_min":
            raise InfeasibleError(f"{path.name}: the kernel did not answer.")
        taken(path, text, timeout_s)

    with monkeypatch.context() as patch:
        patch.setattr(sysfs, "write", hanging)
        outcome = restore(journal, files.root)
    assert sysfs.read(md / "sync_max") == "max"
    assert outcome.checking
    assert not outcome.complete
    assert outcome.foreign == []
    thread, ticks = files.root / "proc/77", int(began_s * os.sysconf("SC_CLK_TCK"))
    thread.mkdir(parents=True)
    (thread / "comm").write_text("md0_resync\n")
    (thread / "stat").write_text(f"77 (md0_resync) D 2 {'0 ' * 17}{ticks} 0 0\n")
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert not outcome.checking
    assert outcome.foreign == []
    assert (sysfs.read(md / "sync_action"), sysfs.read(md / "sync_min")) == ("idle", "0")


@pytest.mark.parametrize("comm", ["md_archive2019_resync", "md_archive2019_"])
def test_the_thread_of_a_long_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, comm: str
) -> None:
    """Since Linux 5.17 it is not cut."""
    thread = tmp_path / "77"
    thread.mkdir()
    (thread / "comm").write_text(f"{comm}\n")
    (thread / "stat").write_text(f"77 ({comm}) D 2 {'0 ' * 17}100 0 0\n")
    monkeypatch.setattr(own_check, "PROC", tmp_path)
    assert own_check._thread_began_s("md_archive2019") == 100 / os.sysconf("SC_CLK_TCK")
    assert own_check._thread_began_s("md_archive2020") is None
