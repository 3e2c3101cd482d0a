"""What runs and checks leave behind is found, and said what to do about."""

import fcntl
import json
import os
from pathlib import Path

import fake_sysfs
import pytest

from autotune.preflight import leftovers
from autotune.safety.journal import Journal
from autotune.safety.paths import journal_path, waiting_path
from autotune.system.array import find_array
from autotune.system.stack import read_stack


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    return fake_sysfs.raid6(tmp_path)


def found(machine: fake_sysfs.FakeMachine, *known: Path) -> list[str]:
    array = find_array("md0", machine.root)
    findings = leftovers.find(array, read_stack(array), {str(path) for path in known})
    assert {finding.severity for finding in findings} <= {"warn"}
    return [finding.message for finding in findings]


def journal(folder: Path, **changes: object) -> Path:
    path = folder / "journal.jsonl"
    head = {"uuid": "u", "device": "/dev/md0", "boot": "b", "pid": 7, "originals": {}, **changes}
    path.write_text(json.dumps(head) + "\n")
    return path


def test_a_tidy_array_has_none(machine: fake_sysfs.FakeMachine) -> None:
    assert found(machine) == []


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("sync_min", "4096", "starts at sector 4096"),
        ("sync_max", "8192", "stops at sector 8192"),
    ],
)
def test_a_check_that_would_be_partial_is_named(
    machine: fake_sysfs.FakeMachine, file: str, text: str, words: str
) -> None:
    machine.put(f"sys/block/md0/md/{file}", text)
    (message,) = found(machine)
    assert words in message
    assert f"md0/md/{file}`" in message
    machine.put("sys/block/md0/md/sync_action", "recover")
    said = found(machine)
    if file == "sync_min":
        assert said == []
    else:
        assert "(recover) goes no further than to sector 8192" in said[0]
        assert "unless" not in said[0]


def test_scratch_folders_without_a_journal_are_named_once(
    machine: fake_sysfs.FakeMachine, tmp_path: Path
) -> None:
    mount = tmp_path / "mnt"
    left, known = mount / ".autotune-0123", mount / ".autotune-4567"
    mount.mkdir()
    # As a user may have renamed it, where the folder around is theirs.
    precious, open_to_all = mount / ".autotune-precious", mount / ".autotune-open"
    for folder in (left, known, precious, open_to_all, mount / "precious"):
        folder.mkdir(0o755 if folder == open_to_all else 0o700)
    for folder in (left, precious):
        (folder / "scratch").write_text("data")
    (precious / "backup").write_text("root's")
    (mount / ".autotune-link").symlink_to(mount / "precious")
    (mount / ".autotune-file").write_text("")
    if os.geteuid() == 0:
        # Of somebody who would have root remove it.
        (mount / ".autotune-theirs").mkdir()
        os.chown(mount / ".autotune-theirs", 65534, 65534)
    machine.mount("md0", mount)
    machine.mount("md0", mount)
    (message,) = found(machine, known)
    assert f"`rm -f {left}/scratch && rmdir {left}`" in message


def test_an_open_journal_asks_for_a_restore(
    machine: fake_sysfs.FakeMachine, tmp_path: Path
) -> None:
    path = journal(tmp_path)
    Journal.load(path).checking(True)
    text, folders = leftovers.describe(path, machine.root)
    assert "autotune restore" in text
    assert "still runs" not in text
    assert folders == []
    machine.put("sys/block/md0/md/sync_action", "check")
    assert "its check of the array still runs" in leftovers.describe(path, machine.root)[0]


def test_a_run_under_way_is_not_to_be_restored(tmp_path: Path) -> None:
    path = journal(tmp_path)
    held = Journal.load(path)
    held.claim()
    text, _ = leftovers.describe(path)
    assert "process 7 on /dev/md0 is under way" in text
    assert "restore" not in text


def test_a_journal_that_cannot_be_read_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_text("{")
    assert "autotune restore" in leftovers.describe(path)[0]


def test_a_journal_that_nobody_holds_of_an_array_that_does_not_run_is_told(
    tmp_path: Path,
) -> None:
    path = journal_path(tmp_path, "e" * 32)
    path.parent.mkdir(parents=True, mode=0o700)
    journal(path.parent).replace(path)
    (told,) = leftovers.abandoned(tmp_path, ["f" * 32])
    assert "An earlier run on /dev/md0 was not cleaned up" in told
    assert leftovers.abandoned(tmp_path, ["e" * 32]) == []
    # What waits, too, is told with its array.
    path = path.replace(waiting_path(path))
    assert leftovers.abandoned(tmp_path, ["e" * 32]) == []
    assert len(leftovers.abandoned(tmp_path, ["f" * 32])) == 1
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert leftovers.abandoned(tmp_path, []) == []


def test_a_journal_of_another_array_prevents_no_run_while_somebody_holds_it(
    tmp_path: Path,
) -> None:
    path = journal(tmp_path)
    assert leftovers.prevents(path, {"u"})
    with path.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert leftovers.prevents(path, {"journal"})
        assert not leftovers.prevents(path, {"u"})
    path.chmod(0o666)
    assert leftovers.prevents(path, {"u"})
    path.unlink()
    assert not leftovers.prevents(path, {"u"})
