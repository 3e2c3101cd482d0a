"""The journal and the restore, on files that stand for sysfs."""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from autotune import sysfs
from autotune.errors import AutotuneError, RefusalError
from autotune.guardian import Guardian, guarded
from autotune.journal import (
    BOOT_ID,
    Journal,
    applied_path,
    clear_if_torn,
    is_held,
    journal_path,
    open_journals,
)
from autotune.restore import restore

UUID = "f6e606b38ce3aa5941c0aa90d0ab4f9c"


class Files:
    """A few sysfs files below a root, and a journal over them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.boot("boot-1")
        self.md = root / "sys/block/md0/md"
        self.queue = root / "sys/block/sda/queue"
        texts = {
            self.queue / "scheduler": "mq-deadline [none] bfq",
            self.queue / "nr_requests": "64",
            self.md / "stripe_cache_size": "256",
            self.md / "sync_speed_min": "1000 (system)",
            self.md / "sync_speed_max": "200000 (local)",
            self.md / "sync_min": "0",
            self.md / "sync_action": "idle",
        }
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
        limits = root / "proc/sys/dev/raid"
        limits.mkdir(parents=True)
        (limits / "speed_limit_min").write_text("1000\n")
        (limits / "speed_limit_max").write_text("200000\n")
        self.paths = [path for path in texts if path.name != "sync_action"]
        self.path = journal_path(root / "state", UUID)

    def boot(self, name: str) -> None:
        path = self.root / BOOT_ID.relative_to("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)

    def open(self) -> Journal:
        return Journal.open(self.path, UUID, "/dev/md0", self.paths, self.root)

    def reload(self) -> Journal:
        return Journal.load(self.path)

    def write(self, journal: Journal, path: Path, text: str) -> None:
        journal.writing(path, text)
        path.write_text(text)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_what_was_changed_goes_back_and_the_journal_with_it(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "256"
    assert outcome.restored == [str(cache)]
    assert not files.path.exists()


def test_a_value_that_followed_the_system_follows_it_again(files: Files) -> None:
    low = files.md / "sync_speed_min"
    files.write(files.open(), low, "30000")
    restore(files.reload(), files.root)
    assert sysfs.read(low) == "system"


def test_a_value_that_somebody_else_set_is_left_and_named(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    cache.write_text("777")
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(cache) == "777"
    assert len(outcome.foreign) == 1
    assert "777" in outcome.foreign[0]
    assert not files.path.exists()


def test_what_follows_from_our_writes_is_ours(files: Files) -> None:
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    (files.queue / "nr_requests").write_text("256")
    journal.settled()
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(files.queue / "nr_requests") == "64"
    assert not outcome.foreign


def test_what_the_scheduler_resets_on_the_way_back_is_put_back_too(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = files.queue / "nr_requests"
    requests.write_text("500")
    journal = files.open()
    files.write(journal, files.queue / "scheduler", "bfq")
    requests.write_text("64")
    journal.settled()
    true_write = sysfs.write

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        true_write(path, text, timeout_s)
        if path.name == "scheduler":
            requests.write_text("128")

    monkeypatch.setattr(sysfs, "write", write)
    del journal
    outcome = restore(files.reload(), files.root)
    assert sysfs.read(requests) == "500"
    assert not outcome.foreign


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
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = files.queue / "nr_requests"
    true_write = sysfs.write

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        true_write(path, text, timeout_s)
        if path.name == "scheduler":
            requests.write_text("128")

    monkeypatch.setattr(sysfs, "write", write)
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


def test_a_journal_that_is_gone_is_not_made_anew(files: Files) -> None:
    journal = files.open()
    files.path.unlink()
    with pytest.raises(AutotuneError, match="cannot be written"):
        journal.writing(files.md / "stripe_cache_size", "4096")
    assert not files.path.exists()


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
    journal = Journal.open(path, UUID, "/dev/md0", [file])
    guardian = Guardian(journal)
    journal.writing(file, "4096")
    file.write_text("4096\n")
    os.close(guardian._writing)
    time.sleep(0.5)
    assert file.read_text() == "4096\n"
    journal._held.close()
    assert guardian._process.wait(10) == 0
    assert file.read_text() == "256"
    assert not path.exists()


def test_originals_go_back_even_if_the_journal_is_gone(tmp_path: Path) -> None:
    """Its file system may be unmounted under a run."""
    file = tmp_path / "stripe_cache_size"
    file.write_text("256\n")
    path = journal_path(tmp_path / "state", UUID)
    with guarded(Journal.open(path, UUID, "/dev/md0", [file]), print) as journal:
        journal.writing(file, "4096")
        file.write_text("4096\n")
        shutil.rmtree(path.parent)
    assert file.read_text() == "256"


def test_a_journal_that_was_restored_meanwhile_is_not_restored_again(files: Files) -> None:
    journal = files.open()
    left = files.reload()
    journal.close()
    with pytest.raises(RefusalError, match="has just put"):
        left.claim(wait=True)


def test_what_was_applied_before_a_reboot_is_no_original_after_it(files: Files) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    for boot in ("boot-1", "boot-2"):
        files.boot(boot)
        cache.write_text("256")
        journal = files.open()
        files.write(journal, cache, "4096")
        journal.keep(applied)
    restore(Journal.load(applied), files.root)
    assert sysfs.read(cache) == "256"


def test_a_check_of_ours_accounts_for_sync_min(files: Files) -> None:
    journal = files.open()
    journal.checking(True)
    (files.md / "sync_action").write_text("check")
    (files.md / "sync_min").write_text("123456")
    restore(files.reload(), files.root)
    assert sysfs.read(files.md / "sync_min") == "0"
    assert sysfs.read(files.md / "sync_action") == "idle"


def test_nothing_is_written_that_has_no_original(files: Files) -> None:
    with pytest.raises(AutotuneError, match="not in the journal"):
        files.open().writing(files.root / "etc/passwd", "x")


def test_tuned_values_never_become_originals(files: Files) -> None:
    files.write(files.open(), files.md / "stripe_cache_size", "4096")
    with pytest.raises(RefusalError, match="autotune restore"):
        files.open()
    assert files.reload().record.originals[str(files.md / "stripe_cache_size")] == "256"


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


def test_files_that_are_gone_are_no_failure(files: Files) -> None:
    cache = files.md / "stripe_cache_size"
    files.write(files.open(), cache, "4096")
    cache.unlink()
    outcome = restore(files.reload(), files.root)
    assert outcome.complete
    assert str(cache) in outcome.gone


@pytest.mark.parametrize("keep", [0.2, 0.9])
def test_a_last_line_that_was_cut_is_not_heeded(files: Files, keep: float) -> None:
    journal = files.open()
    whole = len(files.path.read_bytes())
    journal.writing(files.md / "stripe_cache_size", "4096")
    text = files.path.read_bytes()
    files.path.write_bytes(text[: whole + int((len(text) - whole) * keep)])
    assert files.reload().record.ours == {}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind":"open"}', "null\n"])
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

    def cleared_first(self: Journal, wait: bool = False) -> None:
        self.path.unlink()
        claim(self, wait)

    monkeypatch.setattr(Journal, "claim", cleared_first)
    with pytest.raises(RefusalError):
        files.open()


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
    assert files.path.exists()
    folder.mkdir()
    assert restore(files.reload(), files.root).complete
    assert not folder.exists()
    assert not files.path.exists()


def test_only_folders_of_ours_are_removed(files: Files) -> None:
    ours, theirs = files.root / ".autotune-1", files.root / "precious"
    link = files.root / ".autotune-2"
    for folder in (ours, theirs):
        folder.mkdir()
        (folder / "file").write_text("x")
    link.symlink_to(theirs)
    journal = files.open()
    for folder in (ours, theirs, link):
        journal.scratch(folder)
    restore(files.reload(), files.root)
    assert not ours.exists()
    assert (theirs / "file").exists()


def test_the_journal_is_for_its_owner_alone(files: Files) -> None:
    files.open()
    assert files.path.stat().st_mode & 0o077 == 0


def test_what_is_kept_can_be_undone_even_after_a_second_time(files: Files) -> None:
    cache, applied = files.md / "stripe_cache_size", applied_path(files.root / "state", UUID)
    for text in ("4096", "8192"):
        journal = files.open()
        files.write(journal, cache, text)
        journal.keep(applied)
        assert not files.path.exists()
    restore(Journal.load(applied), files.root)
    assert sysfs.read(cache) == "256"
    assert not applied.exists()


def test_every_line_is_json(files: Files) -> None:
    journal = files.open()
    journal.checking(True)
    journal.scratch(files.root / ".autotune-x\n{")
    for line in files.path.read_text().splitlines():
        json.loads(line)
