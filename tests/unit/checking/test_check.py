"""A check from its start to its end, on a model of md, in time that passes at once."""

import contextlib
import errno
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest
from md_check import UNIT, MdCheck

from autotune.checking import bounded_check, obstacles, part, stored
from autotune.checking import check as check_module
from autotune.checking.check import check
from autotune.checking.options import (
    ASKED_ANEW,
    OVERTAKEN,
    REPLACED,
    UNTOLD,
    WINDOW_CLOSED,
    WINDOW_SHUT,
    CheckOptions,
)
from autotune.checking.record import CheckRecord
from autotune.errors import RefusalError, StoppedError
from autotune.guard.goals import Goals
from autotune.safety import signals
from autotune.safety.journal import Journal
from autotune.service.quiet_time import QuietHours
from autotune.system import sysfs
from autotune.system.array import Array, find_array

SIZE = 130_048 * 2
SECTORS_S = 4096
LOOK_S = 0.3


class Site:
    """A fake array whose disks read 2 MiB a second; `meanwhile` happens at each look."""

    def __init__(self, folder: Path) -> None:
        self.machine = fake_sysfs.raid6(folder)
        self.md = MdCheck(SIZE)
        self.now_s = 0.0
        self.meanwhile: Callable[[], None] = lambda: None
        self.notices: list[str] = []
        self.told: list[int] = []
        self.held: list[str] = []
        """What sync each hold was made for."""
        self.state = folder / "state"
        self.temperature = 20.0

    def monotonic(self) -> float:
        return self.now_s

    CLOCK_BOOTTIME = 7

    def clock_gettime(self, _clock: int) -> float:
        return self.monotonic()

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.meanwhile()

    def now(self) -> datetime:
        return datetime(2026, 1, 1) + timedelta(seconds=self.now_s)

    def check(self, **more: object) -> tuple[CheckRecord | None, str]:
        options = CheckOptions(
            goals=Goals(policy="foreground"),
            state_dir=self.state,
            hottest_c=50,
            on_window=lambda _: None,
            waiting=lambda *_: None,
            notice=self.notices.append,
            unheld=self.notices.append,
            mismatched=lambda record: self.told.append(record.mismatches),
            least_kib=1000,
            now=self.now,
            **more,  # type: ignore[arg-type]
        )
        return check("/dev/md0", options)

    @property
    def read_once(self) -> bool:
        """Whether what was read begins at 0, ends at the end, and was read once."""
        ranges = self.md.read_ranges
        whole = (ranges[0][0], ranges[-1][1]) == (0, SIZE)
        return whole and all(a[1] == b[0] for a, b in pairwise(ranges))


class GuardLoop:
    """Stands for the guard's: lets the disks read."""

    behind = ""

    def __init__(self, site: Site, array: Array) -> None:
        self._site = site
        site.held.append(array.sync_action)

    def run(self, going: Callable[[], bool], _on_window: object) -> bool:
        while going():
            self._site.md.go(int(SECTORS_S * LOOK_S))
            self._site.sleep(LOOK_S)
        return False


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(tmp_path)

    @contextlib.contextmanager
    def guarded(journal: Journal, _notice: object) -> Iterator[object]:
        yield SimpleNamespace(lost="", journal=journal)
        journal.close()

    for name in ("read", "read_or", "write"):
        monkeypatch.setattr(sysfs, name, getattr(site.md, name))
    for module in (check_module, part, bounded_check, signals):
        monkeypatch.setattr(module, "time", site)
    for module in (check_module, part):
        monkeypatch.setattr(module, "lock", lambda *_, **_how: contextlib.nullcontext())
    monkeypatch.setattr(check_module, "find_array", lambda _: find_array("md0", tmp_path))
    monkeypatch.setattr(part, "guarded", guarded)
    monkeypatch.setattr(part, "GuardLoop", lambda array, *_: GuardLoop(site, array))
    monkeypatch.setattr(bounded_check, "FIRST_SECTORS", 2 * SECTORS_S)
    monkeypatch.setattr(bounded_check, "LEAST_SECTORS", SECTORS_S)
    monkeypatch.setattr(bounded_check, "LEAD_S", 4.0)
    monkeypatch.setattr(obstacles, "temperatures", lambda *_: {"sda": site.temperature})
    monkeypatch.setattr(
        obstacles, "lasting", lambda array: "It is degraded." if array.degraded else ""
    )
    return site


def test_it_reads_all_once_and_tells_of_what_differs(site: Site) -> None:
    site.md.bad = {1000, 200_000}
    record, why = site.check()
    assert record is not None
    assert why == ""
    assert record.ended is not None
    assert (record.position, record.pieces, record.mismatches) == (SIZE, 1, 16)
    # The first, not days later; all, in the end.
    assert site.told == [8, 16]
    assert site.read_once
    assert (site.md.low, site.md.read(Path("sync_max"))) == (0, "max")
    assert stored.load(next((site.state / "checks").iterdir())).checks == (record,)


def test_it_is_held_and_shown_as_a_check(site: Site) -> None:
    site.check()
    assert site.held == ["check"]


def test_a_full_disk_ends_no_check_and_is_said_once(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "checks")

    monkeypatch.setattr(stored, "save", full)
    record, why = site.check()
    assert record is not None
    assert record.ended is not None
    assert (why, record.position) == ("", SIZE)
    assert sum("No space left" in text for text in site.notices) == 1


def test_three_windows_read_each_sector_once(site: Site) -> None:
    ends = []
    for night in range(3):
        # A minute and a half before the window closes.
        site.now_s = night * 86_400 + 3600 - 45
        ends.append(site.check(window=QuietHours(0, 60), patient=True))
    records = [record for record, _ in ends if record]
    assert [why for _, why in ends] == [WINDOW_CLOSED, WINDOW_CLOSED, ""]
    assert 0 < records[0].share < records[1].share < records[2].share == 1
    assert records[2].pieces == 3
    assert site.read_once


def test_a_window_that_opens_soon_is_waited_for_and_another_is_not(site: Site) -> None:
    site.now_s = 3600 * 5
    assert site.check(window=QuietHours(0, 60), patient=True) == (None, WINDOW_SHUT)
    site.now_s = 86_400 - 1800
    record, why = site.check(window=QuietHours(0, 60), patient=True)
    assert record is not None
    assert (record.share, why) == (1.0, "")


def test_what_another_command_has_found_meanwhile_is_not_forgotten(site: Site) -> None:
    """As where a timer waits for its window, and somebody does not."""

    def meanwhile() -> None:
        site.meanwhile = lambda: None
        record, why = site.check(anew=True)
        assert (record and record.mismatches, why) == (8, "")

    site.md.bad = {1000}
    site.now_s = 3600.0 * 3 - 600
    site.meanwhile = meanwhile
    assert site.check(window=QuietHours(3 * 60, 4 * 60), patient=True) == (None, OVERTAKEN)
    (kept,) = stored.by_uuid(site.state).values()
    assert [each.mismatches for each in kept.checks] == [8]
    assert site.read_once


def test_a_warm_disk_is_waited_for_until_it_is_cooler(site: Site) -> None:
    seen: list[str] = []

    def meanwhile() -> None:
        if site.now_s > 20:
            site.temperature = 51 if site.now_s < 200 else 49 if site.now_s < 300 else 47
        if 60 < site.now_s < 300:
            seen.append(site.md.action)

    site.meanwhile = meanwhile
    record, why = site.check()
    assert record is not None
    assert (record.share, why, record.pieces) == (1.0, "", 2)
    assert set(seen) == {"idle"}
    assert any("has 51 °C" in text for text in site.notices)
    assert any("goes on at" in text for text in site.notices)
    assert site.read_once


def test_a_recovery_goes_first_and_its_new_member_is_read_from_the_start(site: Site) -> None:
    site.machine.put("sys/block/sda/wwid", "old")

    def meanwhile() -> None:
        if site.md.action == "check" and 20 < site.now_s < 60:
            site.md.interrupt()
            site.md.action, site.md.files["degraded"] = "recover", "1"
            site.machine.put("sys/block/sda/wwid", "new")
        if site.md.action == "recover" and site.now_s > 100:
            site.md.action, site.md.files["degraded"] = "idle", "0"

    site.meanwhile = meanwhile
    record, _ = site.check()
    assert record is not None
    assert record.share == 1
    assert any("a recovery of it is under way" in text for text in site.notices)
    first, second = stored.load(next((site.state / "checks").iterdir())).checks
    assert (first.given_up, first.ended) == (REPLACED, None)
    assert (second.parts[0].start, second.position) == (0, SIZE)


def test_a_member_that_is_to_be_replaced_is_at_once(site: Site) -> None:
    folder, ends = "sys/block/md0/md", []

    def meanwhile() -> None:
        if site.now_s > 20 and not ends:
            site.machine.put(f"{folder}/dev-sda/state", "in_sync,want_replacement")
            site.machine.put(f"{folder}/dev-sdf/state", "spare")
            if site.md.action == "idle":
                # md begins within a moment.
                ends.append(site.now_s + 0.5)
        if ends and ends[0] < site.now_s < 100 and site.md.action == "idle":
            site.md.action = "recover"
        if site.now_s > 100 and site.md.action == "recover":
            site.machine.put(f"{folder}/dev-sda/state", "faulty,want_replacement")
            site.machine.put(f"{folder}/dev-sdf/state", "in_sync")
            site.md.action = "idle"

    site.meanwhile = meanwhile
    record, why = site.check()
    assert record is not None
    assert (record.share, why) == (1.0, "")
    # Not after the bounded_check has come to its end.
    assert ends[0] < 20 + part.LOOK_S + 2 * LOOK_S
    assert any("a recovery of it is under way" in text for text in site.notices)
    first, second = stored.load(next((site.state / "checks").iterdir())).checks
    assert first.given_up == REPLACED
    assert "the replacement of the member sda" in first.parts[-1].ended
    assert (second.parts[0].start, second.position) == (0, SIZE)


def test_a_member_that_fails_ends_it_where_it_was(site: Site) -> None:
    def meanwhile() -> None:
        if site.now_s > 20:
            site.md.files["degraded"] = "1"
            site.md.interrupt()

    site.meanwhile = meanwhile
    with pytest.raises(StoppedError, match=r"The check stopped at \d+%: It is degraded"):
        site.check()
    history = stored.load(next((site.state / "checks").iterdir()))
    assert history.current is not None
    assert 0 < history.current.share < 1
    with pytest.raises(RefusalError, match="degraded"):
        site.check()


def test_a_member_that_is_back_by_its_bitmap_within_a_moment_ends_no_check(site: Site) -> None:
    def meanwhile() -> None:
        if site.now_s > 20 and "last_sync_action" not in site.md.files:
            site.md.interrupt()
            # Its recovery is over before anybody looks.
            site.md.files["last_sync_action"] = "recovery"

    site.meanwhile = meanwhile
    record, why = site.check()
    assert record is not None
    assert (record.share, record.pieces, why) == (1.0, 2, "")


def test_what_somebody_else_ends_is_not_begun_again(site: Site) -> None:
    def meanwhile() -> None:
        if site.now_s > 20:
            site.md.interrupt()

    site.meanwhile = meanwhile
    with pytest.raises(StoppedError, match="somebody else ended the check"):
        site.check()
    site.meanwhile = lambda: None
    record, _ = site.check()
    assert record is not None
    assert record.pieces == 2


@pytest.mark.parametrize(
    ("level", "why"), [("raid6", "somebody else ended the check"), ("raid10", "as bad blocks")]
)
def test_bad_blocks_end_a_check_of_raid10_alone(site: Site, level: str, why: str) -> None:
    site.machine.put("sys/block/md0/md/level", level)
    site.machine.put("sys/block/md0/md/dev-sdb/bad_blocks", "40960 512")
    site.meanwhile = site.md.interrupt
    with pytest.raises(StoppedError, match=why):
        site.check()


def test_a_late_ctrl_c_ends_at_the_end(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = signals.Signals()
    monkeypatch.setattr(check_module, "Signals", lambda: asked)

    def meanwhile() -> None:
        if site.md.read(Path("sync_max")) == str(SIZE - UNIT) and not asked.name:
            asked.name, asked.count = "SIGINT", 1

    site.meanwhile = meanwhile
    record, why = site.check()
    assert asked.name
    assert record is not None
    assert (record.position, why) == (SIZE, "")
    assert record.ended is not None
    assert record.parts[-1].ended == part.DONE
    assert site.read_once


@pytest.mark.parametrize("left", [UNIT, 8, 0])
def test_one_that_was_stopped_just_before_its_end_comes_to_it(site: Site, left: int) -> None:
    site.meanwhile = lambda: site.md.interrupt() if site.now_s > 20 else None
    with pytest.raises(StoppedError):
        site.check()
    path = next((site.state / "checks").iterdir())
    history = stored.load(path)
    assert history.current is not None
    part = history.current.parts[-1].model_copy(update={"end": SIZE - left})
    stored.save(history.now("/dev/md0", history.current.changed(parts=(part,))), path)
    site.meanwhile = lambda: None
    record, why = site.check()
    assert record is not None
    assert (record.position, why) == (SIZE, "")
    assert record.ended is not None


def test_one_that_is_to_begin_anew_does(site: Site) -> None:
    site.meanwhile = lambda: site.md.interrupt() if 20 < site.now_s < 60 else None
    with pytest.raises(StoppedError):
        site.check()
    site.now_s = 100
    record, _ = site.check(anew=True)
    assert record is not None
    assert (record.pieces, record.position) == (1, SIZE)
    history = stored.load(next((site.state / "checks").iterdir()))
    assert [each.given_up for each in history.checks] == [ASKED_ANEW, ""]


def test_one_on_superblocks_that_tell_no_new_member_begins_anew(site: Site) -> None:
    """A member may have been rebuilt before another assembly, or before another check."""
    site.machine.put("sys/block/md0/md/metadata_version", "0.90")
    site.meanwhile = lambda: site.md.interrupt() if 20 < site.now_s < 60 else None
    with pytest.raises(StoppedError):
        site.check()
    site.now_s = 100
    record, _ = site.check()
    assert record is not None
    assert (record.pieces, record.position) == (1, SIZE)
    history = stored.load(next((site.state / "checks").iterdir()))
    assert [each.given_up for each in history.checks] == [UNTOLD, ""]
    assert any("0.90" in text for text in site.notices)


def test_what_was_rebuilt_meanwhile_is_read_though_nothing_tells_it(site: Site) -> None:
    """A check that somebody makes after the recovery hides that there was one."""
    site.machine.put("sys/block/md0/md/metadata_version", "0.90")
    site.machine.put("sys/block/md0/md/last_sync_action", "check")
    moves = iter([(20.0, "recover"), (60.0, "idle"), (1e9, "")])
    due_s, action = next(moves)

    def meanwhile() -> None:
        nonlocal due_s, action
        if site.now_s > due_s:
            site.md.interrupt()
            site.md.action = action
            due_s, action = next(moves)

    site.meanwhile = meanwhile
    record, why = site.check()
    assert record is not None
    assert (record.position, record.pieces, why) == (SIZE, 1, "")
    history = stored.load(next((site.state / "checks").iterdir()))
    assert [each.given_up for each in history.checks] == [UNTOLD, ""]


def test_a_check_goes_on_once_its_members_can_be_asked_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.meanwhile = lambda: site.md.interrupt() if 20 < site.now_s < 60 else None
    with pytest.raises(StoppedError):
        site.check()
    known = stored.load(next((site.state / "checks").iterdir())).current
    site.now_s, site.meanwhile = 100, lambda: None
    members = obstacles.members

    def asked(array: Array) -> tuple[str, ...]:
        if site.now_s < 200:
            raise RefusalError("mdadm cannot be asked.")
        return members(array)

    monkeypatch.setattr(obstacles, "members", asked)
    with pytest.raises(RefusalError, match="cannot be asked"):
        site.check()
    assert stored.load(next((site.state / "checks").iterdir())).current == known
    record, why = site.check(patient=True)
    assert record is not None
    assert known is not None
    assert (record.began, record.pieces, why) == (known.began, 2, "")
    assert "The check of /dev/md0 waits: mdadm cannot be asked." in site.notices


def test_what_was_read_before_the_array_was_stopped_is_not_forgotten(site: Site) -> None:
    """One that waits for much does not wait for another array of the name."""
    array_state = site.machine.root / "sys/block/md0/md/array_state"

    def stop() -> None:
        if site.now_s > 20:
            site.md.interrupt()
            array_state.write_text("clear\n")

    site.meanwhile = stop
    with pytest.raises(StoppedError, match=r"The check stopped at .* is not running"):
        site.check(patient=True)
    history = stored.load(next((site.state / "checks").iterdir()))
    assert history.current is not None
    assert history.current.position > 0
