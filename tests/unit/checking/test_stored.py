"""What is kept of checks: parts without gaps, over any number of processes."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import fake_sysfs
import pytest
from pydantic import ValidationError

from autotune.checking import stored
from autotune.checking.record import MOST_CHECKS, MOST_PARTS, CheckHistory, CheckRecord, Felt, Part
from autotune.errors import AutotuneError
from autotune.system.array import find_array
from autotune.untrusted import MOST_KEPT_BYTES

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def record(**more: object) -> CheckRecord:
    return CheckRecord(began=NOON, array="raid5", members=("a", "b"), size=1000, **more)  # type: ignore[arg-type]


def part(start: int, end: int, minute: int, **more: object) -> Part:
    return Part(start=start, end=end, began=NOON + timedelta(minutes=minute), **more)  # type: ignore[arg-type]


def test_a_part_that_grows_stays_one() -> None:
    done = record().with_part(part(0, 8, 0)).with_part(part(0, 64, 0, mismatches=8))
    assert (done.position, done.pieces, done.mismatches) == (64, 1, 8)
    done = done.with_part(part(64, 64, 1)).with_part(part(64, 80, 2, seconds=5))
    assert (done.position, done.pieces, done.seconds) == (80, 2, 5)


@pytest.mark.parametrize("start", [0, 72, 56])
def test_a_gap_or_an_overlap_is_refused(start: int) -> None:
    with pytest.raises(ValidationError, match="a part starts at"):
        record().with_part(part(0, 64, 0)).with_part(part(start, 100, 1))


def test_what_was_not_read_is_not_called_complete() -> None:
    with pytest.raises(ValidationError, match="called complete at 64 of 1000"):
        record().with_part(part(0, 64, 0)).changed(ended=NOON)
    assert record().with_part(part(0, 1000, 0)).changed(ended=NOON).ended == NOON


def test_many_parts_are_joined_and_counted() -> None:
    done = record()
    for number in range(90):
        done = done.with_part(part(number * 8, number * 8 + 8, number, seconds=1, mismatches=1))
    assert len(done.parts) == MOST_PARTS
    assert (done.pieces, done.position, done.seconds, done.mismatches) == (90, 720, 90, 90)


def test_a_check_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    path = stored.path_of(tmp_path, "uuid")
    assert stored.load(path) == CheckHistory()
    felt = Felt().seen(12_345_678, False).seen(99e6, True)
    history = CheckHistory(device="/dev/md0").begun(record(felt=felt, ceiling_ns=5e7), "")
    stored.save(history, path)
    assert stored.load(path) == history
    assert list(stored.by_uuid(tmp_path).values()) == [history]
    assert path.stat().st_mode & 0o777 == 0o600


def full(parts: int, p99s: int) -> CheckHistory:
    """As many checks as are kept, in many parts, with many p99s; the newest goes on."""
    pieces = tuple(
        part(n * 8, n * 8 + 8, n, seconds=12345.6, ended="its window has closed")
        for n in range(parts)
    )
    felt = Felt(judged=p99s, p99_ns={n * 100_000: 1 for n in range(p99s)})
    whole = record(parts=pieces, pieces=parts, felt=felt).changed(size=parts * 8, ended=NOON)
    return CheckHistory(
        device="/dev/md0", checks=(*[whole] * (MOST_CHECKS - 1), record(parts=pieces))
    )


@pytest.mark.parametrize(("parts", "p99s"), [(MOST_PARTS, 400), (MOST_PARTS, 810), (1, 1)])
def test_what_is_stored_can_be_read_again_however_much_it_was(
    tmp_path: Path, parts: int, p99s: int
) -> None:
    path, history = stored.path_of(tmp_path, "uuid"), full(parts, p99s)
    stored.save(history, path)
    again = stored.load(path)
    assert path.stat().st_size <= MOST_KEPT_BYTES
    assert again.checks == history.checks[-len(again.checks) :]
    assert len(again.checks) == MOST_CHECKS if parts == 1 else len(again.checks) > 30
    # As an earlier version left it.
    path.write_text(history.model_dump_json(indent=1))
    assert stored.load(path) == history


@pytest.mark.parametrize("text", ["", "{", '{"checks": 3}', '{"checks": [{"began": "x"}]}'])
def test_a_damaged_file_is_not_taken_for_nothing(tmp_path: Path, text: str) -> None:
    path = stored.path_of(tmp_path, "uuid")
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(AutotuneError, match="remove it, and the next check begins at the start"):
        stored.load(path)


def test_one_that_begins_anew_gives_the_other_up() -> None:
    history = CheckHistory().begun(record(), "").now("/dev/md0", record().with_part(part(0, 8, 0)))
    assert history.current is not None
    assert history.current.position == 8
    history = history.begun(record(), "a member was replaced")
    assert [each.given_up for each in history.checks] == ["a member was replaced", ""]
    assert history.current is not None
    assert history.current.position == 0


def test_when_a_check_is_due() -> None:
    day_s, whole = 86_400.0, record().with_part(part(0, 1000, 0)).changed(ended=NOON)
    assert CheckHistory().is_due(day_s, NOON)
    history = CheckHistory().begun(whole, "")
    assert not history.is_due(30 * day_s, NOON + timedelta(days=29))
    assert history.is_due(30 * day_s, NOON + timedelta(days=30))
    assert history.begun(record(), "").is_due(30 * day_s, NOON)
    # The clock was ahead as it began, and is right again.
    assert history.is_due(30 * day_s, NOON - timedelta(days=1))


def test_what_differs_is_known_until_a_whole_check_finds_nothing(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    array = find_array("md0", tmp_path)
    path, state = stored.path_of(tmp_path / "state", array.uuid), tmp_path / "state"
    assert stored.mismatched(array, state) is None
    bad, clean = part(0, 1000, 0, mismatches=64), part(0, 1000, 0)
    history = CheckHistory().begun(record().with_part(bad).changed(ended=NOON), "")
    # Of the last part, md says 0; and so far the next check has found nothing.
    for known in (history, history.begun(record().with_part(part(0, 8, 0)), "")):
        stored.save(known, path)
        assert "2026-11-01 has found 64 sectors that differ" in str(stored.mismatched(array, state))
    machine.put("sys/block/md0/md/mismatch_cnt", "64")
    assert stored.mismatched(array, state) is None, "md says it"
    machine.put("sys/block/md0/md/mismatch_cnt", "0")
    stored.save(history.begun(record().with_part(clean).changed(ended=NOON), ""), path)
    assert stored.mismatched(array, state) is None
    path.write_text("{")
    assert stored.mismatched(array, state) is None


def test_how_it_disturbed() -> None:
    felt = Felt()
    assert (felt.middle_ns, felt.worst_ns) == (None, None)
    for ns in (10e6, 12.34e6, 13e6, 80e6, 12.31e6):
        felt = felt.seen(ns, ns > 50e6)
    assert (felt.middle_ns, felt.worst_ns, felt.judged, felt.over) == (12_000_000, 80_000_000, 5, 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_no_record_behind_a_link_of_somebody_else_is_read_or_written(tmp_path: Path) -> None:
    """What is forged there would be believed to be read."""
    path = stored.path_of(tmp_path, "0123")
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    stored.save(CheckHistory(), theirs / path.name)
    before = (theirs / path.name).read_bytes()
    path.parent.symlink_to(theirs)
    os.chown(path.parent, 65534, 65534, follow_symlinks=False)
    with pytest.raises(AutotuneError, match="belongs to"):
        stored.load(path)
    with pytest.raises(AutotuneError, match="somebody else has made"):
        stored.save(CheckHistory().begun(record(), ""), path)
    assert (theirs / path.name).read_bytes() == before
