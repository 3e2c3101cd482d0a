"""A guard that waits: for a sync, for its turn, and for whoever has the array."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import AutotuneError, MeasurementError, RefusalError, StoppedError
from autotune.guard import session as module
from autotune.guard.goals import Goals
from autotune.guard.session import GuardOptions, Summary, guard
from autotune.safety.signals import Signals
from autotune.system.array import Array, find_array

SYNC = "md0 : active raid6 sda[0]\n      [>....]  recovery = 1.0% (10/1000) finish=1.0min\n"
DELAYED = "md0 : active raid6 sda[0]\n      \tresync=DELAYED\n"
IDLE = "md0 : active raid6 sda[0]\n"


class Machine:
    """An array whose sync changes as a guard waits: each attempt to guard is a `turn`, which does
    something and says how the attempt went."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.files = fake_sysfs.raid6(root)
        self.array: Array = find_array("md0", root)
        self.turns: list[Callable[[], Summary]] = []
        self.pauses: list[Callable[[], None]] = []
        """What happens in each of the pauses that are made."""
        self.notices: list[str] = []
        self.said: list[str] = []
        self.unguarded: list[int] = []
        """After so many guarded syncs it was told that none is guarded now."""
        self.began: list[datetime] = []
        monkeypatch.setattr(module, "find_array", lambda _device: self.array)
        monkeypatch.setattr(module, "refusal", lambda _array: None)
        monkeypatch.setattr(module, "_one", self._one)
        monkeypatch.setattr(module, "WAIT_S", 0.01)
        monkeypatch.setattr(module, "BROKEN_S", 0.01)
        monkeypatch.setattr(Signals, "pause", lambda signals, _s: self._pause(signals))

    def _one(
        self,
        _array: Array,
        _options: GuardOptions,
        _signals: Signals,
        _warned: bool,
        began: datetime,
    ) -> tuple[Summary, str]:
        self.began.append(began)
        return self.turns.pop(0)(), ""

    def _pause(self, signals: Signals) -> bool:
        if self.pauses:
            self.pauses.pop(0)()
        return not signals.name

    def sync(self, action: str, mdstat: str) -> None:
        self.files.put("proc/mdstat", mdstat)
        self.files.put("sys/block/md0/md/sync_action", action)

    def guarded(self) -> Summary:
        """A turn in which the sync is guarded to its end, and then somebody ends the guard."""
        self.sync("idle", IDLE)
        os.kill(os.getpid(), signal.SIGTERM)
        return Summary("recovery", 1.0, 1, 1, 1, 0, "the recovery is over", False)

    def guard(self, wait: bool = True) -> bool:
        options = GuardOptions(
            goals=Goals(1e6),
            state_dir=Path(),
            on_window=lambda _window: None,
            finished=lambda summary: self.said.append(summary.ended),
            unguarded=lambda: self.unguarded.append(len(self.said)),
            notice=self.notices.append,
            unheld=lambda _text: None,
        )
        return guard("/dev/md0", options, wait)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_a_date_counts_from_the_start_of_the_sync_however_often_it_is_tried(
    machine: Machine,
) -> None:
    def refused() -> Summary:
        raise RefusalError("Another run works on it.")

    def broken() -> Summary:
        raise MeasurementError("The probe ended.")

    def ended() -> Summary:
        machine.sync("idle", IDLE)
        machine.pauses = [lambda: machine.sync("recover", SYNC)]
        return Summary("recovery", 1.0, 1, 1, 1, 0, "the recovery is over", False)

    machine.sync("recover", SYNC)
    machine.turns = [refused, broken, ended, machine.guarded]
    assert machine.guard()
    first, second, third, of_the_next = machine.began
    # By two clocks, which are not read at once.
    near = timedelta(milliseconds=100)
    assert max(first, second, third) - min(first, second, third) < near
    assert of_the_next > first


def test_a_sync_in_the_hour_that_comes_twice_began_when_it_did(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """02:10 for the second time, at the end of summer time."""
    now_s = 1_792_890_600.0
    machine.sync("recover", SYNC)
    machine.turns = [machine.guarded]
    with monkeypatch.context() as there:
        there.setenv("TZ", "Europe/Berlin")
        time.tzset()
        there.setattr(time, "time", lambda: now_s)
        assert machine.guard()
        assert machine.began[0].timestamp() == pytest.approx(now_s, abs=5)
        assert (machine.began[0].hour, machine.began[0].fold) == (2, 1)
    time.tzset()


def test_what_cannot_be_put_back_is_not_tried_each_second(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[Path] = []

    def put_back(_array: Array, path: Path, _notice: object) -> bool:
        tries.append(path)
        return len(tries) < 3

    monkeypatch.setattr(module, "put_back_leftovers", put_back)
    machine.sync("idle", IDLE)
    machine.turns = [machine.guarded]
    machine.pauses = [*[lambda: None] * 9, lambda: machine.sync("recover", SYNC)]
    assert machine.guard()
    # At the start, and in the first pause.
    assert len(tries) == 2


def test_a_refusal_is_asked_again_while_the_sync_lasts(machine: Machine) -> None:
    def refused() -> Summary:
        raise RefusalError("Another run works on it.")

    machine.sync("recover", SYNC)
    machine.turns = [refused, refused, refused, machine.guarded]
    assert machine.guard()
    assert (machine.turns, machine.notices) == ([], ["Another run works on it."])
    assert machine.said == ["the recovery is over"]


def test_a_sync_that_ends_before_it_is_guarded_was_none(machine: Machine) -> None:
    machine.sync("recover", DELAYED)
    machine.pauses = [lambda: machine.sync("idle", IDLE)]
    assert not machine.guard(wait=False)
    assert machine.said == []


@pytest.mark.parametrize(
    ("action", "mdstat"),
    [("recover", SYNC), ("check", SYNC.replace("recovery", "check").replace("(10/", "(2/"))],
    ids=["a recovery", "another check"],
)
def test_what_begins_as_one_that_was_released_ends_is_guarded_at_once(
    machine: Machine, action: str, mdstat: str
) -> None:
    """Nobody has seen the array idle between them."""

    def released() -> Summary:
        machine.pauses = [lambda: None, lambda: machine.sync(action, mdstat)]
        return Summary("check", 1.0, 1, 1, 1, 0, "the recovery waits for it", True)

    machine.sync("check", SYNC.replace("recovery", "check"))
    machine.turns = [released, machine.guarded]
    assert machine.guard()
    assert machine.turns == []
    first, second = machine.began
    assert first < second


def test_a_sync_is_left_to_whoever_set_its_limits(machine: Machine) -> None:
    def moved() -> Summary:
        raise StoppedError("Stopped: somebody else set it.")

    def over() -> None:
        assert machine.turns == [machine.guarded]
        machine.sync("idle", IDLE)

    machine.sync("recover", SYNC)
    machine.turns = [moved, machine.guarded]
    machine.pauses = [lambda: None, lambda: None, over, lambda: machine.sync("recover", SYNC)]
    assert machine.guard()
    assert (machine.pauses, machine.turns) == ([], [])


@pytest.mark.parametrize("wait", [True, False])
def test_a_sync_that_waits_for_another_is_guarded_when_it_runs(
    machine: Machine, wait: bool
) -> None:
    machine.sync("recover", DELAYED)
    machine.turns = [machine.guarded]
    machine.pauses = [lambda: None, lambda: machine.sync("recover", SYNC)]
    assert machine.guard(wait)
    assert (machine.pauses, machine.turns) == ([], [])
    assert "waits for that of another array" in machine.notices[0]


def test_a_signal_ends_a_guard_in_the_middle_of_a_sync(machine: Machine) -> None:
    def stopped() -> Summary:
        machine.guarded()
        machine.sync("recover", SYNC)
        return Summary("recovery", 1.0, 1, 1, 1, 0, "stopped by SIGTERM", False)

    machine.sync("recover", SYNC)
    machine.turns = [stopped]
    assert machine.guard()
    assert machine.said == ["stopped by SIGTERM"]


@pytest.mark.parametrize("wait", [True, False])
def test_a_recovery_in_the_place_of_a_check_is_guarded_next(machine: Machine, wait: bool) -> None:
    def overtaken() -> Summary:
        machine.sync("recover", SYNC)
        return Summary("check", 1.0, 1, 1, 1, 0, "", False, overtaken=True)

    machine.sync("check", SYNC)
    machine.turns = [overtaken, machine.guarded]
    assert machine.guard(wait)
    assert machine.said == ["", "the recovery is over"]


def test_a_recovery_that_was_interrupted_is_no_success(machine: Machine) -> None:
    def interrupted() -> Summary:
        machine.sync("idle", IDLE)
        return Summary("recovery", 1.0, 1, 1, 1, 0, "cut", False, interrupted=True)

    machine.sync("recover", SYNC)
    machine.turns = [interrupted]
    with pytest.raises(AutotuneError, match="recovery of /dev/md0 was interrupted"):
        machine.guard(wait=False)
    assert machine.said == ["cut"]
    machine.sync("recover", SYNC)
    machine.turns = [interrupted, machine.guarded]
    machine.pauses = [lambda: machine.sync("recover", SYNC)]
    assert machine.guard()
    assert len(machine.notices) == 1
    assert machine.said == ["cut", "cut", "the recovery is over"]


def test_without_waiting_no_sync_is_nothing_to_guard(machine: Machine) -> None:
    machine.sync("idle", IDLE)
    assert not machine.guard(wait=False)


def test_a_file_that_cannot_be_read_does_not_end_a_guard_that_waits(machine: Machine) -> None:
    def unreadable() -> Summary:
        raise OSError(24, "Too many open files", "/proc/mdstat")

    machine.sync("recover", SYNC)
    machine.turns = [unreadable, machine.guarded]
    assert machine.guard()
    assert "Too many open files" in machine.notices[0]


def test_a_probe_that_breaks_does_not_end_a_guard_that_waits(machine: Machine) -> None:
    def broken() -> Summary:
        raise MeasurementError("fio ended before its time.")

    machine.sync("recover", SYNC)
    machine.turns = [broken, broken, machine.guarded]
    assert machine.guard()
    assert machine.notices == ["fio ended before its time."]
    assert machine.said == ["the recovery is over"]
    machine.sync("recover", SYNC)
    machine.turns = [broken]
    with pytest.raises(MeasurementError):
        machine.guard(wait=False)


def test_an_array_that_another_one_has_the_name_of_by_now_ends_the_wait(machine: Machine) -> None:
    """The guarded one may run under another name, and nobody else would guard it."""
    block = machine.array.md.parent

    def assembled_anew() -> None:
        block.rename(block.with_name("gone"))
        shutil.copytree(block.with_name("gone"), block, symlinks=True)

    machine.sync("idle", IDLE)
    machine.pauses = [assembled_anew]
    with pytest.raises(RefusalError, match="/dev/md0 was stopped"):
        machine.guard()


def test_a_sync_that_is_not_guarded_any_more_is_told_to_be_so(machine: Machine) -> None:
    """Else its metrics would say for the rest of it that it is guarded."""

    def stopped() -> Summary:
        machine.pauses = [
            lambda: None,
            lambda: machine.sync("idle", IDLE),
            lambda: machine.sync("recover", SYNC),
        ]
        raise StoppedError("Stopped: somebody else set sync_speed_max to 5000.")

    machine.sync("recover", SYNC)
    machine.turns = [stopped, machine.guarded]
    assert machine.guard()
    # Before anything was guarded to its end, and at the latest when that sync was gone.
    assert machine.unguarded[0] == 0
