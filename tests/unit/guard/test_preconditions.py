"""What a guard finds before it begins."""

import contextlib
from pathlib import Path

import fake_sysfs
import pytest

from autotune.deploy import udevd
from autotune.errors import RefusalError
from autotune.guard import session
from autotune.guard.goals import Goals
from autotune.guard.preconditions import no_room, put_back_leftovers
from autotune.guard.session import GuardOptions
from autotune.guard.throttle import files
from autotune.preflight import checks
from autotune.safety.new_journal import new_journal
from autotune.system import sysfs
from autotune.system.array import find_array


def test_the_shut_throttle_of_a_killed_guard_is_opened_first(tmp_path: Path) -> None:
    """It would be taken for a limit that leaves no room to guard."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/sys/kernel/random/boot_id", "boot")
    machine.put("sys/block/md0/md/sync_speed_max", "150000 (local)")
    array = find_array("md0", tmp_path)
    path, limit = tmp_path / "journal/u.jsonl", array.md / "sync_speed_max"
    journal = new_journal(path, array.uuid, array.device, files(array), tmp_path)
    journal.writing(limit, "1001")
    limit.write_text("1001 (local)\n")
    assert "only ever lowers it" in str(no_room(array))
    said: list[str] = []
    # Not of one that is at work.
    put_back_leftovers(array, path, said.append)
    assert sysfs.value(limit) == "1001"
    journal.release()
    put_back_leftovers(array, path, said.append)
    assert sysfs.value(limit) == "150000"
    assert no_room(array) is None
    assert said == ["What an earlier run left on /dev/md0 is put back."]
    assert not path.exists()


def test_the_shut_throttle_of_another_guard_is_no_limit_that_somebody_has_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Raised by hand, it would end that guard, and stay so."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/mdstat", "md0 : active raid6\n      [>..]  recovery = 1.0% (10/1000)\n")
    machine.put("sys/block/md0/md/sync_action", "recover")
    machine.put("sys/block/md0/md/sync_speed_max", "1001 (local)")
    others = [RefusalError("The guard of process 7 has it.")]

    def lock(*_: object, **_how: object) -> contextlib.AbstractContextManager[None]:
        if others:
            raise others.pop()
        return contextlib.nullcontext()

    monkeypatch.setattr(session, "find_array", lambda _: find_array("md0", tmp_path))
    monkeypatch.setattr(session, "lock", lock)
    monkeypatch.setattr(checks, "program_missing", lambda: None)
    goals, nothing = Goals(50e6), lambda _: None
    options = GuardOptions(goals, tmp_path, nothing, nothing, lambda: None, nothing, nothing)
    with pytest.raises(RefusalError, match="process 7"):
        session.guard("/dev/md0", options)
    with pytest.raises(RefusalError, match="only ever lowers it"):
        session.guard("/dev/md0", options)


def test_a_journal_without_a_whole_line_is_no_obstacle(tmp_path: Path) -> None:
    array = find_array("md0", fake_sysfs.raid6(tmp_path).root)
    path = tmp_path / "u.jsonl"
    path.write_text('{"kind": "op')
    put_back_leftovers(array, path, lambda _text: None)
    assert not path.exists()


def test_no_limit_is_shown_as_a_negative_one(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("sys/block/md0/md/sync_speed_max", "-1 (local)")
    assert no_room(find_array("md0", tmp_path)) is None


def test_what_is_persisted_is_set_once_a_journal_that_was_left_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal has kept udev from it: since the boot, or as a disk was added."""
    woken: list[str] = []
    monkeypatch.setattr(udevd, "wake", lambda uuids, _notice: woken.extend(uuids))
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/sys/kernel/random/boot_id", "boot-1")
    array = find_array("md0", tmp_path)
    machine.put(f"etc/udev/rules.d/99-autotune-{array.uuid}.rules", "")
    path = tmp_path / "journal/u.jsonl"
    for boot in ("boot-1", "boot-2"):
        new_journal(path, array.uuid, array.device, files(array), tmp_path).release()
        machine.put("proc/sys/kernel/random/boot_id", boot)
        put_back_leftovers(array, path, lambda _text: None)
        assert woken.pop() == array.uuid
