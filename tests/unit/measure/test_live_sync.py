"""A real recovery that is tuned: what may be touched, how its progress reads, and how it ends."""

from collections.abc import Callable
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import StoppedError, SyncEndedError
from autotune.knobs import ALL, DEFAULT, for_array
from autotune.measure import live_sync
from autotune.measure.live_sync import Recovery, live_knobs, live_phases
from autotune.measure.workload import Workload, load_workload
from autotune.preflight import checks
from autotune.safety.watch import Watch
from autotune.system.array import Array, find_array
from autotune.system.stack import read_stack
from autotune.system.sync import real_sync

MD = "sys/block/md0/md"
REBUILD = load_workload("rebuild")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fake_sysfs.FakeMachine:
    monkeypatch.setattr(checks.shutil, "which", lambda name: f"/usr/bin/{name}")
    machine = fake_sysfs.raid6(tmp_path)
    machine.put(f"{MD}/sync_action", "recover")
    machine.put(f"{MD}/degraded", "1")
    at(machine, 1000)
    return machine


def at(machine: fake_sysfs.FakeMachine, done_kib: int) -> None:
    progress = f"      [>....]  recovery = 1.0% ({done_kib}/130048) finish=1.0min"
    machine.put("proc/mdstat", f"md0 : active raid6 sde[4]\n{progress}")


def array_of(machine: fake_sysfs.FakeMachine) -> Array:
    return find_array("md0", machine.root)


def test_a_recovery_is_refused_but_for_who_tunes_it(machine: fake_sysfs.FakeMachine) -> None:
    array = array_of(machine)
    refused = checks.refusals(checks.check(array, read_stack(array)))
    assert "autotune run /dev/md0 --workload rebuild" in refused[0]
    findings = checks.check(array, read_stack(array), real_sync(array))
    assert [finding.severity for finding in findings] == ["warn"]
    assert "never restarted" in findings[0].message


def test_all_of_a_recovery_is_not_done_while_md_ends_it(machine: fake_sysfs.FakeMachine) -> None:
    with Recovery(array_of(machine), lambda: None) as recovery:
        recovery.done_bytes()
        for done_kib in (1500, 130048, 2000):
            at(machine, done_kib)
            recovery.done_bytes()
        at(machine, 2100)
        assert recovery.done_bytes() == 600 * 1024


def test_a_recovery_that_stands_still_is_refused(machine: fake_sysfs.FakeMachine) -> None:
    machine.put(f"{MD}/sync_max", "131072")
    array = array_of(machine)
    refused = checks.refusals(checks.check(array, read_stack(array), "recover"))
    assert "echo max" in refused[0]


@pytest.mark.parametrize("action", ["idle", "check", "repair", "reshape", "frozen"])
def test_nothing_else_is_a_recovery(machine: fake_sysfs.FakeMachine, action: str) -> None:
    machine.put(f"{MD}/sync_action", action)
    assert real_sync(array_of(machine)) == ""


def test_only_a_workload_of_checks_goes_with_a_recovery() -> None:
    assert REBUILD.only_checks
    assert not load_workload("balanced").only_checks


def test_phases_last_at_least_one_window_of_the_kernels() -> None:
    [phase] = live_phases(REBUILD)
    assert (phase.name, phase.min_seconds) == ("resync", live_sync.WINDOW_S)
    assert phase.max_seconds > phase.min_seconds


def test_no_knob_is_tuned_that_is_dangerous_or_moves_nothing(
    machine: fake_sysfs.FakeMachine,
) -> None:
    array = array_of(machine)
    phases = Workload.model_validate(
        {
            "name": "w",
            "phases": [
                {
                    "name": "resync",
                    "weight": 1,
                    "check": True,
                    "probe": {"rate_iops": 9, "read_percent": 50},
                }
            ],
        }
    ).phases
    names = {knob.name for knob in live_knobs(array, for_array(array, ALL), phases)}
    assert "group_thread_cnt" not in names
    assert "read_ahead_kb" not in names
    assert {knob.name for knob in live_knobs(array, for_array(array, DEFAULT), phases)} == {
        "stripe_cache_size",
        "sync_speed_min",
        "sync_speed_max",
        "scheduler",
    }


def test_progress_counts_from_the_start_of_the_phase(machine: fake_sysfs.FakeMachine) -> None:
    sync = Recovery(array_of(machine), lambda: None)
    for start in (1000, 9000):
        at(machine, start)
        with sync:
            assert sync.done_bytes() == 0
            at(machine, start + 500)
            assert sync.done_bytes() == 500 * 1024
            at(machine, start + 400)
            assert sync.done_bytes() == 500 * 1024, "it never goes back"


def test_between_two_members_it_shows_no_position_and_at_its_end_it_is_over(
    machine: fake_sysfs.FakeMachine,
) -> None:
    with Recovery(array_of(machine), lambda: None) as sync:
        sync.done_bytes()
        machine.put("proc/mdstat", "md0 : active raid6 sde[4]\n      \tresync=DELAYED")
        assert sync.done_bytes() == 0
        machine.put(f"{MD}/sync_action", "idle")
        with pytest.raises(SyncEndedError, match="the recovery of /dev/md0 has ended"):
            sync.done_bytes()


def test_a_recovery_whose_new_disk_fails_has_not_ended(
    machine: fake_sysfs.FakeMachine, watch: Callable[[], Watch]
) -> None:
    """It shows no position either, and is idle; the array lacks a member as before."""
    machine.put(f"{MD}/degraded", "1")
    seen = watch()
    with Recovery(array_of(machine), seen.look) as sync:
        sync.done_bytes()
        machine.put("proc/mdstat", "md0 : active raid6 sde[4](F)\n")
        machine.put(f"{MD}/sync_action", "idle")
        with pytest.raises(StoppedError, match="the recovery of /dev/md0 was interrupted"):
            sync.done_bytes()


def test_after_a_change_of_speed_the_kernel_is_given_time_to_forget(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[int] = []
    monkeypatch.setattr(live_sync, "WINDOW_S", 0.05)
    monkeypatch.setattr(live_sync, "PAUSE_S", 0.01)
    sync = Recovery(array_of(machine), lambda: looked.append(1))
    with sync:
        assert not looked
    machine.put(f"{MD}/sync_speed_max", "5000 (local)")
    with sync:
        assert looked
    looked.clear()
    with sync:
        assert not looked


@pytest.fixture
def watch(machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Watch]:
    """Makes a watch that looks at each call."""
    monkeypatch.setattr("autotune.safety.watch.PERIOD_S", 0.0)
    monkeypatch.setattr("autotune.safety.watch.available_bytes", lambda root: 1 << 40)
    return lambda: Watch(array_of(machine), (), real_sync(array_of(machine)))


def test_the_watch_lets_the_recovery_be_that_is_tuned(watch: Callable[[], Watch]) -> None:
    watch()()


@pytest.mark.parametrize(
    ("action", "degraded", "error", "words"),
    [
        ("idle", "0", SyncEndedError, "has ended"),
        ("idle", "1", StoppedError, "was interrupted"),
        ("frozen", "1", StoppedError, "was interrupted"),
        ("recover", "2", StoppedError, "is degraded"),
        ("idle", "2", StoppedError, "is degraded"),
    ],
)
def test_the_watch_tells_an_end_from_a_failure(
    machine: fake_sysfs.FakeMachine,
    watch: Callable[[], Watch],
    action: str,
    degraded: str,
    error: type[StoppedError],
    words: str,
) -> None:
    look = watch()
    machine.put(f"{MD}/sync_action", action)
    machine.put(f"{MD}/degraded", degraded)
    with pytest.raises(error, match=words) as caught:
        look()
    assert type(caught.value) is error


def test_a_recovery_that_starts_by_itself_still_ends_a_run(
    machine: fake_sysfs.FakeMachine, watch: Callable[[], Watch]
) -> None:
    machine.put(f"{MD}/sync_action", "idle")
    machine.put(f"{MD}/degraded", "0")
    look = watch()
    machine.put(f"{MD}/sync_action", "resync")
    with pytest.raises(StoppedError, match="a resync of /dev/md0 has started"):
        look()
