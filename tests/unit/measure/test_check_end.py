"""How a check of ours ends: at the array's end, or by somebody else's hand."""

from collections.abc import Iterator
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import InfeasibleError, StoppedError
from autotune.measure.check import Check
from autotune.safety import own_check
from autotune.safety.new_journal import new_journal
from autotune.system import sysfs

MD = "sys/block/md0/md"
GOING = "md0 : active raid6 sde[4]\n      [=>...]  check =  9.0% ({done}/1000000) finish=1min"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[fake_sysfs.FakeMachine, Check]]:
    """A check that has begun, on files that stand for the kernel's."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/mdstat", "")
    machine.put("proc/sys/kernel/random/boot_id", "boot")
    for name, text in {"sync_min": "0", "sync_max": "max", "mismatch_cnt": "0"}.items():
        machine.put(f"{MD}/{name}", text)
    machine.put(f"{MD}/component_size", "1000000")
    paths = [tmp_path / MD / name for name in ("sync_min", "sync_max")]
    journal = new_journal(tmp_path / "journal/u.jsonl", "u", "/dev/md0", paths, tmp_path)
    with Check("md0", journal, root=tmp_path) as check:
        yield machine, check
        machine.put(f"{MD}/sync_action", "idle")


def go_on(machine: fake_sysfs.FakeMachine, check: Check, done_kib: int) -> int:
    machine.put("proc/mdstat", GOING.format(done=done_kib))
    return check.done_bytes() // 1024


def end(machine: fake_sysfs.FakeMachine, sync_min: int) -> None:
    machine.put("proc/mdstat", "md0 : active raid6 sde[4]")
    machine.put(f"{MD}/sync_action", "idle")
    machine.put(f"{MD}/sync_min", str(sync_min))


def test_a_check_that_reached_its_end_starts_again(
    running: tuple[fake_sysfs.FakeMachine, Check],
) -> None:
    machine, check = running
    assert go_on(machine, check, 480_000) == 480_000
    assert go_on(machine, check, 950_000) == 950_000
    end(machine, 0)
    assert check.done_bytes() == 1_000_000 * 1024
    assert (machine.root / MD / "sync_action").read_text() == "check"
    assert go_on(machine, check, 10_000) == 1_010_000


@pytest.mark.parametrize("shown_kib", [60_000, 1_000_000])
@pytest.mark.parametrize("sync_min", [0, 4096])
def test_a_check_that_somebody_else_ended_stays_ended(
    running: tuple[fake_sysfs.FakeMachine, Check],
    sync_min: int,
    shown_kib: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel notes where it got to only now and then. Until its superblocks are written, it
    shows all."""
    monkeypatch.setattr("autotune.measure.check.SHOWS_AFTER_S", 0.0)
    machine, check = running
    for done_kib in (30_000, 60_000, shown_kib):
        go_on(machine, check, done_kib)
    end(machine, sync_min)
    with pytest.raises(StoppedError, match="somebody else ended the check"):
        check.done_bytes()
    assert (machine.root / MD / "sync_action").read_text() == "idle\n"


@pytest.mark.parametrize(("sync_min", "done_kib"), [(4096, 301_000), (0, 500)])
def test_a_check_that_somebody_started_after_ours_goes_on(
    running: tuple[fake_sysfs.FakeMachine, Check],
    sync_min: int,
    done_kib: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It begins where ours got to, as far as the kernel has noted that."""
    machine, check = running
    for ours_kib in range(0, 300_001, 30_000):
        go_on(machine, check, ours_kib)
    machine.put(f"{MD}/sync_min", str(sync_min))
    monkeypatch.setattr("autotune.measure.check.SHOWS_AFTER_S", 0.0)
    with pytest.raises(StoppedError, match="started another one"):
        go_on(machine, check, done_kib)
    check.__exit__(None, None, None)
    assert sysfs.read(machine.root / MD / "sync_action") == "check"


def test_a_check_that_came_before_ours_goes_on(
    running: tuple[fake_sysfs.FakeMachine, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel takes no bounds for ours then."""
    machine, check = running
    check.__exit__(None, None, None)
    taken, came = sysfs.write, list[Path]()

    def theirs_came(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path.name == "sync_min" and not came:
            came.append(path)
            machine.put(f"{MD}/sync_action", "check")
            raise InfeasibleError("Device or resource busy")
        taken(path, text, timeout_s)

    monkeypatch.setattr(sysfs, "write", theirs_came)
    again = Check("md0", check._journal, root=machine.root)
    with pytest.raises(InfeasibleError, match="busy"):
        again.__enter__()
    assert sysfs.read(machine.root / MD / "sync_action") == "check"


def test_a_check_that_md_has_not_begun_yet_is_told_to_end_until_it_does(
    running: tuple[fake_sysfs.FakeMachine, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes before is lost (action_store), and the check would go on for as long as it is
    waited for."""
    _, check = running
    taken, told = sysfs.write, list[str]()

    def lost_at_first(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path.name == "sync_action":
            told.append(text)
            if len(told) == 1:
                return
        taken(path, text, timeout_s)

    monkeypatch.setattr(sysfs, "write", lost_at_first)
    monkeypatch.setattr(own_check, "AGAIN_S", 0.0)
    check.__exit__(None, None, None)
    assert told == ["idle", "idle"]
    assert not check._journal.record.checking


def test_a_check_that_comes_late_is_ours(
    running: tuple[fake_sysfs.FakeMachine, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk hangs as it is asked for, and md takes it once that answers."""
    machine, check = running
    machine.put(f"{MD}/sync_action", "idle")
    check.__exit__(None, None, None)
    taken, late = sysfs.write, [False]

    def hangs(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path.name == "sync_action" and text == "check":
            late[0] = True
            raise InfeasibleError("not in time")
        if path.name == "sync_action" and late[0]:
            raise InfeasibleError("waits for the earlier one")
        taken(path, text, timeout_s)

    monkeypatch.setattr(sysfs, "write", hangs)
    monkeypatch.setattr(sysfs, "is_late", lambda path: late[0] and path.name == "sync_action")
    again = Check("md0", check._journal, root=machine.root)
    with pytest.raises(InfeasibleError):
        again.__enter__()
    assert check._journal.record.checking, "whoever restores ends it"


def test_one_that_is_frozen_has_ended_once_md_has_noted_where_it_got_to(
    running: tuple[fake_sysfs.FakeMachine, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    """md says "frozen" at once, while its thread still waits for what is on its way. A restore
    before that would put nothing back."""
    machine, check = running
    go_on(machine, check, 480_000)
    machine.put(f"{MD}/sync_action", "frozen")
    machine.put(f"{MD}/sync_completed", "960000 / 2000000")

    def thread_ends(_: float) -> None:
        machine.put(f"{MD}/sync_completed", "none")
        machine.put(f"{MD}/sync_min", "960000")

    monkeypatch.setattr("autotune.measure.check.time.sleep", thread_ends)
    check.__exit__(None, None, None)
    assert sysfs.read(machine.root / MD / "sync_min") == "960000"
    assert check._journal.record.moved


def test_one_that_somebody_has_frozen_ends_the_run_at_once(
    running: tuple[fake_sysfs.FakeMachine, Check], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a phase would go on without its check."""
    monkeypatch.setattr("autotune.measure.check.SHOWS_AFTER_S", 0.0)
    machine, check = running
    go_on(machine, check, 30_000)
    end(machine, 0)
    machine.put(f"{MD}/sync_action", "frozen")
    with pytest.raises(StoppedError, match="md0 is frozen; mdadm does that"):
        check.done_bytes()
    again = Check("md0", check._journal, root=machine.root)
    with pytest.raises(StoppedError, match="md0 is frozen; mdadm does that"):
        again.__enter__()


@pytest.mark.parametrize("sync_min", [4096, 0])
def test_a_check_that_somebody_started_and_that_waits_goes_on(
    running: tuple[fake_sysfs.FakeMachine, Check],
    sync_min: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For an array beside, that is checked by then."""
    machine, check = running
    go_on(machine, check, 300_000)
    machine.put("proc/mdstat", "md0 : active raid6 sde[4]\n      check=DELAYED")
    machine.put(f"{MD}/sync_completed", "delayed")
    machine.put(f"{MD}/sync_min", str(sync_min))
    monkeypatch.setattr("autotune.measure.check.SHOWS_AFTER_S", 0.0)
    with pytest.raises(StoppedError, match="started another one"):
        check.done_bytes()
    check.__exit__(None, None, None)
    assert sysfs.read(machine.root / MD / "sync_action") == "check"
    assert sysfs.read(machine.root / MD / "sync_min") == str(sync_min)


def test_one_of_ours_that_is_started_again_and_waits_is_ours(
    running: tuple[fake_sysfs.FakeMachine, Check],
) -> None:
    machine, check = running
    go_on(machine, check, 950_000)
    end(machine, 0)
    check.done_bytes()
    machine.put(f"{MD}/sync_completed", "delayed")
    assert check.done_bytes() == 1_000_000 * 1024
    assert not check._waits_another()
