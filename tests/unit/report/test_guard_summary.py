"""What a guard says in the end."""

import math

from autotune.guard.session import Summary
from autotune.report.guard import summary_line


def line(judged: int, over: int, few_over: int = 0, ceiling_ns: float = 6e7) -> str:
    found = Summary("check", 100.0, 1 << 30, 20, judged, over, "the check is over", False)
    return summary_line(Summary(**{**vars(found), "few_over": few_over}), ceiling_ns)


def test_it_says_how_often_the_ceiling_was_held() -> None:
    assert line(20, 5).endswith(
        "The p99 was within 60.0 ms for 75 % of the measured time (not counting the first seconds "
        "after users came)."
    )
    assert line(20, 5, ceiling_ns=math.inf).endswith("the settings are as they were found.")


def test_it_says_what_went_first() -> None:
    found = Summary("check", 100.0, 1 << 30, 20, 20, 18, "it is over", False, first="deadline")
    assert "could not both be kept; the deadline was. The p99" in summary_line(found, 6e7)


def test_few_requests_that_were_too_slow_are_not_kept_back() -> None:
    assert line(0, 0).endswith("Users sent hardly any requests meanwhile.")
    assert line(0, 0, 5).endswith(
        "Users sent hardly any requests meanwhile. In another 25 % of the time there were too few "
        "requests to judge, but some took longer than the ceiling."
    )
    assert "In another 25 % of the time" in line(15, 0, 5)
