"""How far a check has surely come, on a model of md."""

from itertools import pairwise
from pathlib import Path

import fake_sysfs
import pytest
from md_check import MAX, UNIT, MdCheck

from autotune.checking import bounded_check as bounded_check_module
from autotune.checking.bounded_check import BoundedCheck, completed, next_limit, surely_read
from autotune.errors import InfeasibleError, RefusalError
from autotune.safety.journal import Journal
from autotune.safety.record import Record
from autotune.system import sysfs
from autotune.system.array import Array, find_array

SIZE = 1 << 20


@pytest.mark.parametrize(
    ("text", "found"),
    [("128 / 4096", (128, 4096)), ("none", None), ("delayed", None), ("", None), ("12 /", None)],
)
def test_what_md_says_of_its_way(text: str, found: tuple[int, int] | None) -> None:
    assert completed(text) == found


@pytest.mark.parametrize(
    ("before", "said", "limit", "sure"),
    [
        (0, 4096, 8192, 4096),
        (0, 4099, 8192, 4096),
        # That of an earlier sync, or one that skips what it cannot read.
        (0, 9000, 8192, 0),
        (4096, 0, 8192, 4096),
        (8192, 8192, 8192, 8192),
    ],
)
def test_only_what_lies_on_the_bounded_check_is_believed(
    before: int, said: int, limit: int, sure: int
) -> None:
    assert surely_read(before, said, limit) == sure


@pytest.mark.parametrize(
    ("position", "ahead", "limit"),
    [
        (0, 1000, 896),
        (0, 10, 128),
        (130, 10, 256),
        (128, 0, 256),
        (0, 1 << 30, SIZE - 128),
        (SIZE - 129, 1 << 30, SIZE - 128),
        (SIZE - 128, 1 << 30, None),
        (SIZE, 1, None),
    ],
)
def test_the_bounded_check_ends_at_a_chunk_and_once_before_the_end(
    position: int, ahead: int, limit: int | None
) -> None:
    assert next_limit(position, ahead, 128, SIZE) == limit


class Bench:
    """A fake array, its journal, and the leashes on it."""

    def __init__(self, folder: Path, md: MdCheck) -> None:
        machine = fake_sysfs.raid6(folder)
        machine.put("proc/sys/kernel/random/boot_id", "boot")
        self.md, self.now_s = md, 0.0
        self.array: Array = find_array("md0", folder)
        self.journal = Journal(folder / "none", Record(self.array.uuid, "/dev/md0", "boot", 1))
        self.journal.checking = lambda *_, **__: None  # type: ignore[assignment]

    def bounded_check(self, start: int) -> BoundedCheck:
        return BoundedCheck(self.array, self.journal, start, self.md.size)

    def go(self, bounded_check: BoundedCheck, sectors: int, looks: int = 1) -> None:
        for _ in range(looks):
            self.md.go(sectors)
            self.now_s += 1
            bounded_check.look(self.now_s)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    md = MdCheck(SIZE)
    made = Bench(tmp_path, md)
    for name in ("read", "read_or", "write"):
        monkeypatch.setattr(sysfs, name, getattr(md, name))
    monkeypatch.setattr(bounded_check_module, "START_LOOK_S", 0.0)
    monkeypatch.setattr(bounded_check_module, "FIRST_SECTORS", 1 << 16)
    monkeypatch.setattr(bounded_check_module, "LEAD_S", 2.0)
    monkeypatch.setattr(bounded_check_module, "LEAST_SECTORS", 1 << 14)
    return made


def test_a_whole_check_reads_all_once_and_says_so(bench: Bench) -> None:
    bench.md.bad = {5000, 700_000}
    with bench.bounded_check(0) as bounded_check:
        while not bounded_check.over:
            bench.go(bounded_check, 30_000)
    assert bounded_check.complete
    assert (bounded_check.position, bounded_check.mismatches) == (SIZE, 16)
    assert bench.md.read_ranges[0][0] == 0
    assert all(a[1] == b[0] for a, b in pairwise(bench.md.read_ranges))
    assert (bench.md.low, bench.md.read(Path("sync_max"))) == (0, "max")


def test_parts_lie_one_behind_the_other_however_md_is_stopped(bench: Bench) -> None:
    position, parts = 0, 0
    while position < SIZE:
        with bench.bounded_check(position) as bounded_check:
            bench.go(bounded_check, 50_000, 3)
            bounded_check.hold()
            while not (bounded_check.at_rest or bounded_check.over):
                bench.go(bounded_check, 50_000)
        assert bounded_check.start == position
        assert bounded_check.position > position
        position, parts = bounded_check.position, parts + 1
    assert bounded_check.complete
    assert parts > 2
    ranges = bench.md.read_ranges
    assert all(a[1] == b[0] for a, b in pairwise(ranges))


@pytest.mark.parametrize("start", [SIZE - UNIT, SIZE - 8, SIZE])
def test_a_few_last_sectors_that_md_reads_at_once_are_the_end_of_a_check(
    bench: Bench, start: int
) -> None:
    """Over before anybody sees it under way."""
    bench.md.bad = {SIZE - 8}
    with bench.bounded_check(start) as bounded_check:
        bench.go(bounded_check, 0)
        assert bounded_check.over
    assert (bounded_check.complete, bounded_check.position) == (True, SIZE)
    assert bounded_check.mismatches == (8 if start < SIZE else 0)
    assert (bench.md.low, bench.md.read(Path("sync_max"))) == (0, "max")


def test_a_few_last_sectors_that_md_did_not_read_are_not(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended before it really began, md says in `sync_min` where it got to: nowhere."""
    bench.md.at_once = False
    write = bench.md.write

    def ended(path: Path, text: str, timeout_s: float = 30.0) -> None:
        write(path, text, timeout_s)
        if text == "check":
            bench.md.completed = 0
            bench.md.interrupt()

    monkeypatch.setattr(sysfs, "write", ended)
    with bench.bounded_check(SIZE - UNIT) as bounded_check:
        bench.go(bounded_check, 0)
        assert bounded_check.over
    assert (bounded_check.complete, bounded_check.position) == (False, SIZE - UNIT)
    assert (bench.md.low, bench.md.read(Path("sync_max"))) == (0, "max")


def test_one_that_is_held_in_front_of_its_last_sectors_reads_them_too(bench: Bench) -> None:
    with bench.bounded_check(0) as bounded_check:
        while bounded_check.position < SIZE - 3 * UNIT:
            bench.go(bounded_check, UNIT * 64)
            if bench.md.read(Path("sync_max")) == str(SIZE - UNIT):
                bounded_check.hold()
        while not (bounded_check.at_rest or bounded_check.over):
            bench.go(bounded_check, UNIT * 64)
    assert (bounded_check.complete, bounded_check.position) == (True, SIZE)


def test_what_is_cut_off_is_read_again_and_nothing_is_left_out(bench: Bench) -> None:
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 4)
    assert bounded_check.position <= bench.md.read_ranges[-1][1]
    assert not bounded_check.complete
    stopped = bounded_check.position
    with bench.bounded_check(stopped) as bounded_check:
        bench.go(bounded_check, 20_000)
    assert bench.md.read_ranges[4][0] == stopped


def test_a_check_that_does_not_begin_has_read_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What md says then is of the sync before."""
    monkeypatch.setattr(bounded_check_module, "START_TIMEOUT_S", 0.0)
    bench.md.begins, bench.md.completed = False, 4096
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 3)
    assert (bounded_check.position, bounded_check.complete) == (0, False)


@pytest.mark.parametrize(("file", "text"), [("degraded", "1"), ("consistency_policy", "journal")])
def test_without_a_member_or_its_journal_nothing_more_is_read(
    bench: Bench, file: str, text: str
) -> None:
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 2)
        sure = bounded_check.position
        bench.md.files[file] = text
        bench.go(bounded_check, 1 << 19)
        bench.md.interrupt()
        bench.go(bounded_check, 1)
        assert bounded_check.over
    assert (bounded_check.position, bounded_check.complete) == (sure, False)


def test_bounds_are_as_they_were_found(bench: Bench) -> None:
    bench.md.low, bench.md.high = 900_000 // 8 * 8, 900_096 // 128 * 128
    found = (bench.md.low, bench.md.high)
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 2)
    assert (bench.md.low, bench.md.high) == found


def test_a_recovery_that_begins_as_the_check_ends_is_left_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """md refuses the bounds then; whoever restores puts them back after it."""
    ended: list[tuple[bool, bool]] = []

    def checking(running: bool, moved: bool = False, start: int | None = None) -> None:
        ended.append((running, moved))

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path.name == "sync_min" and bench.md.action == "idle" and bench.md.position:
            bench.md.action = "recover"
            raise InfeasibleError("EBUSY")
        bench.md.write(path, text)

    monkeypatch.setattr(bench.journal, "checking", checking)
    monkeypatch.setattr(sysfs, "write", write)
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 3)
    assert bounded_check.position > 0
    assert ended == [(True, False), (False, True)]


@pytest.mark.parametrize("name", ["sync_min", "sync_action"])
def test_a_check_that_somebody_starts_just_before_ours_goes_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As a timer of the same hour does. `name`: just before this is written."""
    begun = []

    def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
        if path.name == name and not begun:
            begun.append(True)
            bench.md.write(Path("sync_action"), "check")
            bench.md.go(50_000)
        if path.name == "sync_action" and text == "check":
            raise InfeasibleError("sync_action check: EBUSY")
        bench.md.write(path, text)

    monkeypatch.setattr(sysfs, "write", write)
    with pytest.raises(RefusalError, match="A check of /dev/md0 has just begun"):
        bench.bounded_check(0).__enter__()
    assert bench.md.action == "check"
    assert bench.md.high == MAX


@pytest.mark.parametrize("starts", [False, True])
def test_what_somebody_else_leaves_out_is_not_called_read(bench: Bench, starts: bool) -> None:
    """As by `echo idle > sync_action; echo N > sync_min`, with another check or without."""
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 4)
        sure, limit = bounded_check.position, bench.md.high
        bench.md.interrupt()
        bench.md.low = (sure + limit) // 2 // 8 * 8
        if starts:
            sysfs.write(Path("sync_action"), "check")
        bench.go(bounded_check, 1 << 19, 3)
        assert bounded_check.over
    assert (bounded_check.position, bounded_check.complete) == (sure, False)
    # It is theirs, and goes on to its end.
    assert bench.md.action == ("check" if starts else "idle")
    assert bench.md.read(Path("sync_max")) == "max"


def test_a_later_part_that_comes_to_its_end_is_nobody_elses(bench: Bench) -> None:
    """md has forgotten where it began before anybody sees that it is over."""
    start = SIZE - 40 * UNIT
    with bench.bounded_check(start) as bounded_check:
        bench.go(bounded_check, UNIT, 2)
        bench.md.go(SIZE)
        bounded_check.look(bench.now_s + 1)
        bench.md.go(SIZE)
        bench.md.action, bench.md.begins = "check", False
        bounded_check.look(bench.now_s + 2)
        assert not bounded_check.over
        bench.md.action = "idle"
    assert bounded_check.complete


def test_a_later_part_whose_superblocks_take_their_time_is_nobody_elses(bench: Bench) -> None:
    bench.md.cleans_looks = 30
    with bench.bounded_check(SIZE - 40 * UNIT) as bounded_check:
        while not bounded_check.over:
            bench.go(bounded_check, 64 * UNIT)
    assert bounded_check.complete
    assert bench.md.read(Path("sync_action")) == "idle"


def test_a_member_that_fails_ends_a_check_of_ours_though_md_takes_its_time(bench: Bench) -> None:
    bench.md.cleans_looks = 30
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 3)
        bench.md.files["degraded"] = "1"
        bench.md.interrupt()
        bench.go(bounded_check, 0)
    assert not bounded_check.complete
    assert (bench.md.low, bench.md.high) == (0, MAX)


@pytest.mark.parametrize("place", [0, 640])
def test_a_check_of_somebody_else_keeps_a_bound_of_its_own(bench: Bench, place: int) -> None:
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 4)
        sure = bounded_check.position
        bench.md.interrupt()
        bounds = (("sync_min", str(place)), ("sync_max", "12800"))
        for name, text in (*bounds, ("sync_action", "check")):
            sysfs.write(Path(name), text)
        bench.go(bounded_check, 5_000, 2)
        assert bounded_check.over
    assert (bounded_check.position, bounded_check.complete) == (sure, False)
    assert (bench.md.action, bench.md.low, bench.md.high) == ("check", place, 12_800)


@pytest.mark.parametrize("place", [0, 127_584])
def test_a_check_of_somebody_else_that_waits_for_an_array_beside_goes_on(
    bench: Bench, place: int
) -> None:
    """He has ended ours, and started one there before his own, which md keeps back."""
    with bench.bounded_check(0) as bounded_check:
        bench.go(bounded_check, 20_000, 4)
        sure = bounded_check.position
        bench.md.interrupt()
        for name, text in (("sync_max", "max"), ("sync_min", str(place))):
            sysfs.write(Path(name), text)
        bench.md.waits = True
        sysfs.write(Path("sync_action"), "check")
        bench.go(bounded_check, 0, 2)
        assert bounded_check.over
    assert (bounded_check.position, bounded_check.complete) == (sure, False)
    assert (bench.md.action, bench.md.low, bench.md.high) == ("check", place, MAX)
