"""What waits for the end of a sync, while its journal is taken away."""

import shutil
import threading
from pathlib import Path

import fake_sysfs
import pytest
from journal_files import Files

from autotune.errors import InfeasibleError, RefusalError
from autotune.safety import deferred_restore
from autotune.safety.handed_over import let_wait
from autotune.safety.outcome import Outcome
from autotune.safety.record import Record
from autotune.safety.restore import restore
from autotune.system import sysfs


def test_it_goes_back_though_its_journal_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = Files(tmp_path)
    action, bound = files.md / "sync_action", files.md / "sync_min"

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path == bound and sysfs.read(action) == "recover":
            raise InfeasibleError("EBUSY")
        fake_sysfs.write(path, text)

    monkeypatch.setattr(sysfs, "write", write)
    monkeypatch.setattr(deferred_restore, "LOOK_S", 0.1)
    journal = files.open()
    journal.checking(True)
    journal.store(bound, "0")
    bound.write_text("767280\n")
    action.write_text("recover\n")
    assert restore(journal, tmp_path).waiting
    waiting = threading.Thread(target=deferred_restore.see_through, args=(journal, tmp_path))
    waiting.start()
    shutil.rmtree(files.path.parent.parent)
    action.write_text("idle\n")
    waiting.join(20)
    assert not waiting.is_alive()
    assert sysfs.read(bound) == "0"


def test_an_array_that_came_back_by_another_name_is_the_one_that_is_waited_for(
    tmp_path: Path,
) -> None:
    """Another one has its old name by then."""
    block = tmp_path / "sys/block"
    for name, action in (("md0", "idle"), ("md127", "resync")):
        (block / name / "md").mkdir(parents=True)
        (block / name / "md/group_thread_cnt").write_text("4\n")
        (block / name / "md/sync_action").write_text(f"{action}\n")
    threads = {name: str(block / name / "md/group_thread_cnt") for name in ("md0", "md127")}
    folders = {
        str(block / "md0"): "not this one",
        str(block / "md127"): sysfs.identity(block / "md127"),
    }
    record = Record("a", "/dev/md0", "b", 1, dict.fromkeys(threads.values(), "0"), folders=folders)
    assert record.action(tmp_path) == block / "md127/md/sync_action"
    assert record.waits(tmp_path) == [
        "group_thread_cnt of /dev/md127 goes back by itself once the resync has ended"
    ]


@pytest.mark.parametrize("settings", [[], ["sync_min of /dev/md0 cannot be seen"]])
def test_a_setting_that_cannot_go_back_bars_a_run_and_a_folder_alone_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: list[str]
) -> None:
    """Whatever the record says of it: a bound of a check is in it as no setting is."""
    files = Files(tmp_path)
    journal = files.open()
    journal.scratch(tmp_path / ".autotune-1")
    let_wait(journal)
    journal.release()
    failed = [f"{tmp_path}/.autotune-1: Operation not permitted", *settings]
    outcome = Outcome(failed=failed)
    monkeypatch.setattr(deferred_restore, "put_back", lambda *_: (journal.record, outcome))
    if settings:
        with pytest.raises(RefusalError, match="sync_min"):
            deferred_restore.settle(files.path, tmp_path)
    else:
        deferred_restore.settle(files.path, tmp_path)
