"""A guard at work on a model of md's throttle, in time that passes at once."""

import dataclasses
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import fake_sysfs
import pytest
from md_plant import Plant, PlantProbe

from autotune.errors import AutotuneError, RefusalError, StoppedError
from autotune.guard import loop as hold_module
from autotune.guard import session, stripe_cache
from autotune.guard.feasibility import VAIN_S
from autotune.guard.goals import CEILING, POLICIES, Goals, Promise
from autotune.guard.loop import GuardLoop
from autotune.guard.session import GuardOptions
from autotune.guard.throttle import Throttle, files
from autotune.guard.window import Window
from autotune.measure import foreground_probe
from autotune.safety.new_journal import new_journal
from autotune.safety.record import Record
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array, find_array

CEILING_NS = 100e6
FLOOR_KIB = 1000


class Guarded:
    """A fake array on a plant, and a guard that holds its sync."""

    def __init__(
        self,
        folder: Path,
        plant: Plant,
        monkeypatch: pytest.MonkeyPatch,
        ceiling_ns: float,
        promise: Promise | None = None,
    ) -> None:
        self.machine = machine = fake_sysfs.raid6(folder)
        machine.put("proc/sys/kernel/random/boot_id", "boot")
        for name in plant.limits:
            machine.put(f"sys/block/md0/md/{name}", "0")
        monkeypatch.setattr(sysfs, "read", plant.read)
        monkeypatch.setattr(sysfs, "write", plant.write)
        monkeypatch.setattr(hold_module, "time", plant)
        monkeypatch.setattr(foreground_probe, "ForegroundProbe", lambda *_: PlantProbe(plant))
        self.folder = folder
        self.plant = plant
        self.array: Array = find_array("md0", folder)
        paths = [*files(self.array), *stripe_cache.files(self.array)]
        self.journal = new_journal(folder / "j", self.array.uuid, "/dev/md0", paths, folder)
        self.throttle = Throttle(self.array, self.journal)
        self.hold = GuardLoop(self.array, self.throttle, promise or Promise(ceiling_ns))
        self.windows: list[Window] = []

    def run(self, seconds: float, event: Callable[[], None] = lambda: None) -> bool:
        """Guard for so long; `event` happens all the while."""
        end = self.plant.now_s + seconds

        def going() -> bool:
            event()
            return self.plant.now_s < end

        return self.hold.run(going, self.windows.append)


@pytest.fixture
def guarded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Guarded]:
    return lambda plant, ceiling_ns=CEILING_NS, promise=None: Guarded(
        tmp_path / str(id(plant)), plant, monkeypatch, ceiling_ns, promise
    )


def test_it_holds_the_ceiling_and_is_no_slower_than_it_has_to_be(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant()
    guard = guarded(plant)
    guard.run(160)
    assert plant.share_slow(CEILING_NS / 1e9, 60) < 0.01
    rate = sum(w.sync_bytes_per_s for w in guard.windows[12:]) / len(guard.windows[12:]) / 1024
    # With bursts as long as the ceiling, two a second.
    assert 3000 < rate < 10_000
    assert guard.hold.over <= 0.1 * guard.hold.judged
    assert any(w.source == "accounting" for w in guard.windows)


def test_it_opens_again_without_the_disk_of_its_journal(
    guarded: Callable[..., Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen one would hold the sync shut for as long."""
    guard = guarded(plant := Plant())
    found = plant.read(guard.array.md / "sync_speed_max")
    guard.throttle.shut()
    assert plant.read(guard.array.md / "sync_speed_max") != found
    monkeypatch.setattr(guard.journal, "writing", pytest.fail)
    guard.throttle.open()
    assert plant.read(guard.array.md / "sync_speed_max") == found


def test_a_sync_that_is_interrupted_and_goes_on_keeps_its_pace(
    guarded: Callable[..., Guarded],
) -> None:
    """What md shows meanwhile, all of it, is not done."""
    guard = guarded(plant := Plant())
    guard.run(100)
    before = sum(w.sync_bytes_per_s for w in guard.windows[12:])
    seen = len(guard.windows)
    plant.cleans_until_s = plant.now_s + 0.1
    guard.run(100)
    after = sum(w.sync_bytes_per_s for w in guard.windows[seen + 12 :])
    assert 0.5 < after / before < 2
    assert guard.hold.done_bytes < plant.size_kib * 1024 / 2


@pytest.mark.parametrize(("action", "over"), [("recover", False), ("check", True)])
def test_a_recovery_that_md_holds_for_a_while_is_not_over(
    guarded: Callable[..., Guarded], action: str, over: bool
) -> None:
    """As while a disk is added that has to spin up. A check does not go on by itself."""
    plant = Plant()
    plant.action = action
    guard = guarded(plant)
    guard.hold = GuardLoop(
        dataclasses.replace(guard.array, sync_action=action), guard.throttle, Promise(CEILING_NS)
    )
    guard.run(30)
    plant.frozen_until_s = plant.now_s + 10
    assert guard.run(30) == over
    assert over or guard.windows[-1].sync_bytes_per_s > 0


def test_what_a_throttle_waits_for_has_an_end(guarded: Callable[..., Guarded]) -> None:
    throttle = guarded(Plant()).throttle
    throttle.keep(1000, 0, now_s=0)
    throttle.keep(1000, 1e9, now_s=1)
    assert not throttle.is_open
    for second in range(2, 33):
        throttle.keep(1000, 1e9, now_s=second)
    assert throttle.is_open


def test_a_kernel_whose_clock_stands_still_is_not_believed(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant()
    plant.clock = 0.3
    guard = guarded(plant)
    guard.run(120)
    assert {w.source for w in guard.windows[4:]} == {"probe"}
    # Nor is anything told by it before that is known.
    assert not any(w.p99_ns for w in guard.windows if w.source == "accounting")
    assert plant.share_slow(CEILING_NS / 1e9, 60) < 0.015


def test_the_same_pace_of_a_fixed_limit_breaks_the_ceiling() -> None:
    """What the throttle is for: md lets a fixed limit through second by second."""
    plant = Plant()
    plant.limits["sync_speed_max"] = "8000 (local)"
    plant.sleep(200)
    assert plant.done_kib / 200 == pytest.approx(8000, rel=0.1)
    assert plant.share_slow(CEILING_NS / 1e9, 60) > 0.02


def test_a_foreground_that_goes_frees_the_sync_within_ten_seconds(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant()
    guard = guarded(plant)
    guard.run(120)
    held = plant.done_kib / 120
    plant.iops = 0
    guard.run(10)
    assert guard.throttle.is_open
    before = plant.done_kib
    guard.run(30)
    assert (plant.done_kib - before) / 30 > 0.95 * plant.free_kib > 2 * held
    assert guard.windows[-1].source == "none"
    plant.iops, back = 60, plant.now_s
    guard.run(90)
    before = plant.done_kib
    assert plant.share_slow(CEILING_NS / 1e9, back + 5) < 0.02
    guard.run(30)
    # What was learnt is not forgotten, and md's own mean does not stop the sync.
    assert (plant.done_kib - before) / 30 > 0.5 * held


def test_a_pace_never_runs_away_from_what_the_disks_can_do(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant(free_kib=2500)
    guard = guarded(plant)
    guard.run(80)
    assert max(w.sync_speed_max_kib for w in guard.windows[4:]) <= 1.3 * 2500


def test_an_end_of_the_sync_is_the_end(guarded: Callable[..., Guarded]) -> None:
    plant = Plant(size_kib=200_000)
    guard = guarded(plant)
    assert guard.run(300)
    assert plant.synced
    assert plant.now_s < 200


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    ("action", "file", "left", "after"),
    [
        ("recover", "dev-sda/state", "spare", "in_sync"),
        ("resync", "resync_start", "1024", "none"),
        ("check", "sync_min", "1024", "0"),
    ],
)
def test_one_that_was_interrupted_is_told_from_one_that_came_to_its_end(
    guarded: Callable[..., Guarded], action: str, file: str, left: str, after: str, done: bool
) -> None:
    """md says "idle" after either; what is left tells them apart."""
    plant = Plant(size_kib=4_000_000)
    guard = guarded(plant)
    plant.action = action
    guard.machine.put(f"sys/block/md0/md/{file}", left if action == "recover" else after)
    array = dataclasses.replace(guard.array, sync_action=action)
    guard.hold = GuardLoop(array, guard.throttle, Promise(CEILING_NS))
    assert not guard.run(20)
    guard.machine.put(f"sys/block/md0/md/{file}", after if done else left)
    plant.size_kib = int(plant.done_kib)
    assert guard.run(20)
    assert guard.hold.interrupted == (not done)


def test_a_member_that_md_takes_in_at_the_end_of_a_recovery_has_come_to_it(
    guarded: Callable[..., Guarded],
) -> None:
    """For a moment the recovery is still there, with all of it done."""
    plant = Plant(size_kib=4_000_000)
    guard = guarded(plant)
    guard.machine.put("sys/block/md0/md/dev-sda/state", "spare")
    guard.hold = GuardLoop(
        dataclasses.replace(guard.array, sync_action="recover"), guard.throttle, Promise(CEILING_NS)
    )
    assert not guard.run(20)
    guard.machine.put("sys/block/md0/md/dev-sda/state", "in_sync")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plant, "synced", False)
        plant.size_kib = int(plant.done_kib) + 1
        plant.free_kib = 0
        plant.done_kib = plant.size_kib
        assert not guard.run(5)
    assert guard.run(20)
    assert not guard.hold.interrupted


@pytest.mark.parametrize("lacks", [True, False])
def test_a_recovery_whose_disk_fails_before_anything_was_seen_of_it_is_told(
    guarded: Callable[..., Guarded], lacks: bool
) -> None:
    """Seen of a SCSI disk that vanished as the guard began."""
    plant = Plant(size_kib=4_000_000)
    guard = guarded(plant)
    guard.machine.put("sys/block/md0/md/degraded", str(int(lacks)))
    plant.done_kib = plant.size_kib
    guard.hold = GuardLoop(
        dataclasses.replace(guard.array, sync_action="recover"), guard.throttle, Promise(CEILING_NS)
    )
    assert guard.run(20)
    assert guard.hold.interrupted == lacks


def test_a_recovery_in_the_place_of_a_check_is_guarded_as_one(
    guarded: Callable[..., Guarded],
) -> None:
    """A check that a ceiling slows down may be stopped, which nobody is to be told of a recovery;
    and a deadline goes first of a recovery alone."""
    plant = Plant()
    plant.action = "check"
    guard = guarded(plant)
    array = dataclasses.replace(guard.array, sync_action="check")
    guard.hold = GuardLoop(array, guard.throttle, Promise(CEILING_NS))
    assert not guard.run(20)
    assert not guard.hold.overtaken
    plant.action = "recover"
    assert guard.run(20)
    assert guard.hold.overtaken


def _beside(guard: Guarded, action: str, completed: str = "delayed") -> None:
    """Another array on the same disks, and what its sync is at."""
    machine = guard.machine
    if not (guard.folder / "sys/block/md1").exists():
        machine.array("md1", "raid1", ["sda", "sdb"])
    machine.put("sys/block/md1/md/sync_action", action)
    machine.put("sys/block/md1/md/sync_completed", completed)


def _checked(guard: Guarded) -> None:
    array = dataclasses.replace(guard.array, sync_action="check")
    guard.plant.action = "check"
    guard.hold = GuardLoop(array, guard.throttle, Promise(CEILING_NS))


@pytest.mark.parametrize("action", ["check", "recover"])
def test_no_check_is_held_back_that_a_recovery_waits_for(
    guarded: Callable[..., Guarded], action: str
) -> None:
    """md runs one sync at a time on a disk: a slowed check of one array keeps the other without
    its redundancy for weeks."""
    guard = guarded(Plant())
    _checked(guard)
    _beside(guard, "check")
    guard.run(20)
    assert (guard.hold.behind, guard.hold.released) == ("", False)
    _beside(guard, "recover", "1024 / 2048")
    guard.run(20)
    assert (guard.hold.behind, guard.hold.released) == ("", False)
    if action == "recover":
        guard.hold = GuardLoop(guard.array, guard.throttle, Promise(CEILING_NS))
        guard.plant.action = "recover"
    _beside(guard, "recover")
    guard.run(20)
    assert guard.hold.behind == "the recovery of /dev/md1 waits for it"
    assert guard.hold.released == (action == "check")


@pytest.mark.parametrize("what", ["want_replacement", "degraded"])
def test_nor_one_that_a_disk_of_its_own_waits_for(
    guarded: Callable[..., Guarded], what: str
) -> None:
    guard = guarded(Plant())
    machine = guard.machine
    _checked(guard)
    machine.put("sys/block/md0/md/dev-sde/state", "spare")
    guard.run(20)
    assert (guard.hold.behind, guard.hold.released) == ("", False)
    if what == "degraded":
        machine.put("sys/block/md0/md/degraded", "1")
    else:
        machine.put("sys/block/md0/md/dev-sda/state", "in_sync,want_replacement")
    guard.run(20)
    assert guard.hold.behind
    assert guard.hold.released


def test_everything_is_as_it_was_found(guarded: Callable[..., Guarded]) -> None:
    plant = Plant()
    plant.limits |= {"sync_speed_min": "50000 (local)", "sync_speed_max": "90000 (local)"}
    found = dict(plant.limits)
    guard = guarded(plant)
    guard.run(60)
    assert plant.limits["sync_speed_min"] == f"{FLOOR_KIB} (local)"
    outcome = restore(guard.journal, guard.folder)
    assert (outcome.foreign, outcome.failed) == ([], [])
    assert plant.limits == found


def test_a_policy_that_holds_nothing_sets_nothing(guarded: Callable[..., Guarded]) -> None:
    """Below its minimum, md would let a busy array's sync keep few requests in flight (6.16)."""
    plant = Plant()
    plant.limits |= {"sync_speed_min": "50000 (local)"}
    found = dict(plant.limits)
    guard = guarded(plant, promise=Promise(share=1.0))
    guard.run(60)
    assert plant.limits == found


def announces_nothing_while_shut(
    plant: Plant, guard: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """See that it never waits for the disk that the journal is on while it holds the sync."""
    announce = guard.journal.writing

    def announced(path: Path, text: str) -> None:
        assert not plant.limits["sync_speed_max"].endswith("(local)")
        announce(path, text)

    monkeypatch.setattr(guard.journal, "writing", announced)


def test_a_sysctl_that_is_raised_meanwhile_lets_no_sync_run_away(
    guarded: Callable[..., Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the array follows it, and md holds no sync back that is below it."""
    plant = Plant()
    guard = guarded(plant)
    guard.run(60)
    guard.throttle.shut()
    announces_nothing_while_shut(plant, guard, monkeypatch)
    plant.limits["sync_speed_min"] = "50000 (system)"
    guard.throttle.check()
    guard.windows.clear()
    guard.run(120)
    assert plant.limits["sync_speed_min"] == f"{FLOOR_KIB} (local)"
    assert max(w.sync_bytes_per_s for w in guard.windows[2:]) < 20_000 * 1024


def test_what_somebody_else_sets_is_theirs(guarded: Callable[..., Guarded]) -> None:
    plant = Plant()
    guard = guarded(plant)
    guard.run(30)
    plant.limits["sync_speed_max"] = "7000 (local)"
    with pytest.raises(StoppedError, match="sync_speed_max to 7000"):
        guard.run(30)
    outcome = restore(guard.journal, guard.folder)
    assert len(outcome.foreign) == 1
    assert plant.limits["sync_speed_max"] == "7000 (local)"


def test_nothing_is_written_before_the_journal_has_it(
    guarded: Callable[..., Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant()
    guard = guarded(plant)
    known: Record = guard.journal.record
    store = plant.write

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        assert text == known.originals[str(path)] or text in known.ours[str(path)]
        store(path, text)

    monkeypatch.setattr(sysfs, "write", write)
    guard.run(20)
    # Not a line for each time that the throttle moves.
    assert sum(map(len, known.ours.values())) <= 3


def test_where_the_pace_can_do_no_more_the_depth_does(
    guarded: Callable[..., Guarded], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = Plant(free_kib=1500)
    plant.limits["sync_io_depth"] = "32 (system)"
    guard = guarded(plant)
    announces_nothing_while_shut(plant, guard, monkeypatch)
    guard.run(120)
    assert int(plant.limits["sync_io_depth"].split()[0]) < 32
    plant.iops = 0
    guard.run(30)
    assert plant.limits["sync_io_depth"] == "32 (system)"


def test_a_guard_is_gone_with_its_guardian(guarded: Callable[..., Guarded]) -> None:
    guard = guarded(Plant())

    def killed() -> None:
        raise AutotuneError("the guardian was killed")

    with pytest.raises(AutotuneError):
        guard.run(10, killed)


HOPELESS_NS = 4e6
"""Less than what the plant's requests take without any sync."""


@pytest.mark.parametrize(
    ("action", "degraded"), [("check", "1"), ("recover", "1"), ("recover", "0")]
)
def test_a_degraded_array_is_not_kept_degraded_for_a_ceiling_out_of_reach(
    guarded: Callable[..., Guarded], action: str, degraded: str
) -> None:
    """Nor is one that keeps a disk which is to be replaced."""
    plant = Plant()
    plant.action = action
    guard = guarded(plant, HOPELESS_NS)
    (guard.array.md / "degraded").write_text(f"{degraded}\n")
    assert not guard.run(3 * VAIN_S)
    assert guard.hold.released
    assert VAIN_S < plant.now_s < 2 * VAIN_S
    assert [w.out_of_reach for w in guard.windows] == [False] * (len(guard.windows) - 1) + [True]
    restore(guard.journal, guard.folder)
    assert plant.limits["sync_speed_max"] == "200000 (system)"


@pytest.mark.slow
def test_a_whole_array_stays_at_the_least_pace_until_the_ceiling_is_in_reach(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant()
    plant.action = "check"
    plant.limits["sync_speed_min"] = "1 (local)"
    guard = guarded(plant, HOPELESS_NS)
    guard.run(2 * VAIN_S)
    assert guard.hold.feasibility.out_for_s
    assert not guard.hold.released
    late = guard.windows[-12:]
    # No limit found is a licence to stop the sync.
    assert sum(w.sync_bytes_per_s for w in late) / len(late) > 0.8 * FLOOR_KIB * 1024
    plant.iops = 0
    guard.run(60)
    assert not guard.windows[-1].out_of_reach


def test_a_sync_is_held_to_no_less_than_it_may_be(guarded: Callable[..., Guarded]) -> None:
    guard = guarded(Plant(), HOPELESS_NS)
    guard.hold = GuardLoop(guard.array, guard.throttle, Promise(HOPELESS_NS), least_kib=8000)
    guard.run(120)
    late = guard.windows[-12:]
    rate_kib = sum(w.sync_bytes_per_s for w in late) / len(late) / 1024
    assert 0.8 * 8000 < rate_kib < 2 * 8000


@pytest.mark.slow
def test_a_ceiling_that_can_be_held_is_never_out_of_reach(guarded: Callable[..., Guarded]) -> None:
    guard = guarded(Plant())
    (guard.array.md / "degraded").write_text("1\n")
    guard.run(2 * VAIN_S)
    assert not guard.hold.released


def over_after(guard: Guarded, most_s: float) -> float:
    """When the sync was over, in seconds since the start."""
    assert guard.run(most_s)
    return guard.plant.now_s


def test_a_date_alone_is_met_as_slowly_as_it_allows(guarded: Callable[..., Guarded]) -> None:
    plant = Plant(size_kib=4_000_000)
    guard = guarded(plant, promise=Promise(finish_s=300, spare_s=15))
    taken_s = over_after(guard, 400)
    # At full speed it would have taken 100 s.
    assert 220 < taken_s <= 300
    late = [window for window in guard.windows[4:-4] if window.needed_kib]
    assert late
    assert all(w.left_low_s <= w.left_s <= w.left_high_s for w in late)  # type: ignore[operator]
    assert not any(window.impossible for window in guard.windows)


def test_a_date_and_a_ceiling_that_go_together_are_both_kept(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant(size_kib=1_000_000)
    guard = guarded(plant, promise=Promise(CEILING_NS, finish_s=300, spare_s=15))
    assert over_after(guard, 400) <= 300
    assert guard.hold.over <= 0.1 * guard.hold.judged
    assert plant.share_slow(CEILING_NS / 1e9, 60) < 0.015


def test_a_date_that_the_ceiling_would_lose_goes_first_and_is_said_within_a_minute(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant(size_kib=6_000_000)
    guard = guarded(plant, promise=Promise(HOPELESS_NS, finish_s=300, spare_s=15))
    taken_s = over_after(guard, 400)
    assert 220 < taken_s <= 300
    said = next(window.time_s for window in guard.windows if window.impossible)
    assert said <= 60
    assert not guard.hold.released


def test_a_ceiling_that_goes_first_loses_the_date_and_says_so(
    guarded: Callable[..., Guarded],
) -> None:
    plant = Plant(size_kib=8_000_000)
    guard = guarded(plant, promise=Promise(CEILING_NS, finish_s=260, first=CEILING))
    assert not guard.run(260)
    assert plant.share_slow(CEILING_NS / 1e9, 60) < 0.015
    said = next(window.time_s for window in guard.windows if window.impossible)
    assert said <= 60


def test_users_that_leave_bring_the_date_nearer(guarded: Callable[..., Guarded]) -> None:
    plant = Plant(size_kib=4_000_000)
    guard = guarded(plant, promise=Promise(finish_s=400))
    guard.run(60)
    plant.iops = 0
    guard.run(30)
    plant.iops = 60
    before = guard.windows[5].needed_kib
    guard.run(60)
    after = guard.windows[-1].needed_kib
    assert before is not None
    assert after is not None
    assert after < 0.8 * before


def test_policies_take_twice_as_long_each_and_favour_in_their_order(
    guarded: Callable[..., Guarded],
) -> None:
    times, slow = [], []
    for name in ("rebuild", "balanced", "foreground"):
        plant = Plant(size_kib=2_400_000)
        guard = guarded(plant, promise=Promise(share=POLICIES[name]))
        times.append(over_after(guard, 900))
        slow.append(plant.share_slow(CEILING_NS / 1e9, 10))
    assert times[0] * 2 <= times[1]
    assert times[1] * 2 <= times[2]
    assert slow == sorted(slow, reverse=True)
    assert slow[2] < 0.5 * slow[0]


def test_a_clock_that_is_set_back_makes_a_span_no_longer(guarded: Callable[..., Guarded]) -> None:
    plant = Plant(size_kib=4_000_000)
    guard = guarded(plant, promise=Promise(finish_s=400))
    guard.run(60)
    before = guard.windows[-1].needed_kib
    plant.set_back_s = 7 * 86_400
    guard.run(30)
    assert before
    assert guard.windows[-1].needed_kib == pytest.approx(before, rel=0.3)


def test_a_date_that_has_passed_leaves_the_ceiling(tmp_path: Path) -> None:
    said: list[str] = []
    options = GuardOptions(
        goals=Goals(50e6, by="2026-01-01 06:00"),
        state_dir=Path(),
        on_window=_nothing,
        finished=_nothing,
        unguarded=lambda: None,
        notice=said.append,
        unheld=_nothing,
    )
    now = datetime.now()
    machine = fake_sysfs.raid6(tmp_path)
    array = dataclasses.replace(find_array("md0", machine.root), sync_action="recover")
    assert session._promise(array, options, now) == Goals(50e6).promise("recover", now)
    assert "has passed" in said[0]
    late = dataclasses.replace(options, goals=Goals(by="2026-01-01 06:00"))
    with pytest.raises(RefusalError, match="has passed"):
        session._promise(array, late, now)
    # At its slowest, 16 TB take half a year.
    machine.put("sys/block/md0/md/component_size", "15625000000")
    assert session._promise(array, dataclasses.replace(options, goals=Goals(50e6)), now).binds
    fast = dataclasses.replace(options, goals=Goals(50e6), least_kib=50_000)
    assert not session._promise(array, fast, now).binds


def _nothing(_: object) -> None: ...
