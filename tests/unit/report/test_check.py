"""What is said of checks, on terminals of any width."""

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from autotune.checking.record import CheckHistory, CheckRecord, Felt, Part
from autotune.report import check as report

BEGAN = datetime(2026, 11, 1, 1, 0, tzinfo=UTC)
SIZE = 1_000_000


def record(end: int = SIZE, mismatches: int = 0, **more: object) -> CheckRecord:
    part = Part(start=0, end=end, began=BEGAN, seconds=7200, mismatches=mismatches)
    base = CheckRecord(began=BEGAN, array="raid5", members=("a",), size=SIZE)
    found = base.with_part(part).changed(**more)
    return found.changed(ended=BEGAN + timedelta(hours=3)) if end == SIZE else found


def felt() -> Felt:
    return Felt().seen(12e6, False).seen(13e6, False).seen(61e6, True)


def test_a_whole_check_says_what_it_found_and_how_it_disturbed() -> None:
    said = report.sentences("/dev/md0", record(felt=felt(), ceiling_ns=5e7), "")
    assert said == [
        "Checked all of /dev/md0, 2 h 00 min: no mismatch.",
        "The p99 was 13.0 ms (median over the check) and at most 61.0 ms; it was within 50.0 ms "
        "for 67 % of the measured time.",
        "All limits are as they were found.",
    ]


def test_what_members_list_as_bad_is_not_called_checked() -> None:
    seen = record(unread=2048)
    said = report.sentences("/dev/md0", seen, "")
    assert said[0] == (
        "Checked all of /dev/md0 but 1.0 MiB (which members list as bad blocks), 2 h 00 min: "
        "no mismatch."
    )
    assert report.state(report.document("/dev/md0", seen)) == "complete but 1.0 MiB"


def test_one_that_stopped_says_where_and_how_to_go_on() -> None:
    said = report.sentences("/dev/md0", record(SIZE // 4), "SIGINT")
    assert said[0] == (
        "The check of /dev/md0 is paused at 25.0% (SIGINT); the next `autotune check /dev/md0` "
        "goes on from there. No mismatch so far."
    )
    assert said[1] == "Users sent hardly any requests meanwhile."


def test_one_that_stopped_just_before_its_end_is_not_called_whole() -> None:
    said = report.sentences("/dev/md0", record(SIZE - 8), "SIGINT")
    assert "is paused at 99.9% (SIGINT)" in said[0]
    assert "has read 99% of it" in report.mismatched("/dev/md0", record(SIZE - 8, 16))


def test_mismatches_are_said_in_sectors_and_bytes() -> None:
    assert (
        "16 sectors (8.0 KiB) differ" in report.sentences("/dev/md0", record(mismatches=16), "")[0]
    )
    told = report.mismatched("/dev/md0", record(SIZE // 4, 16))
    assert told.startswith("A check of /dev/md0 has read 25% of it; 16 sectors (8.0 KiB) differ")


def test_programs_get_all_of_it() -> None:
    found = report.document("/dev/md0", record(SIZE // 4, 8, felt=felt()), "SIGINT")
    assert (found["complete"], found["stopped"], found["share"]) == (False, "SIGINT", 0.25)
    assert (found["position_sectors"], found["mismatch_sectors"]) == (SIZE // 4, 8)
    assert found["mismatch_bytes"] == 8 * 512
    assert (found["p99"]["worst_ns"], found["p99"]["held"]) == (61_000_000, 2)
    assert found["parts"][0]["end"] == SIZE // 4


@pytest.mark.parametrize("width", [80, 40])
def test_the_history_fits(width: int) -> None:
    books = [
        CheckHistory(device="/dev/md0").begun(record(mismatches=8, felt=felt()), ""),
        CheckHistory(device="/dev/md127").begun(record(SIZE // 3, given_up="a member"), ""),
    ]
    output = io.StringIO()
    report.print_history(Console(file=output, width=width), books)
    text = output.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "complete" in text
    assert "given up at 33 %" in text.replace("\n", " ").replace("  ", " ")


def test_an_empty_history_says_how_to_begin() -> None:
    output = io.StringIO()
    report.print_history(Console(file=output, width=80), [])
    assert "autotune check /dev/md0" in output.getvalue()
