"""What the benchmark of the time left reads off a screen, and how it judges that."""

import pytest

from autotune.report.live_view import NARROW, View
from benchmarks.time_left import WIDTH, Seen, each_minute, is_near, said


@pytest.mark.parametrize("seconds", [7.0, 40.0, 100.0, 840.0, 3900.0])
def test_it_reads_what_a_run_shows(seconds: float) -> None:
    from rich.console import Console  # noqa: PLC0415

    assert WIDTH >= NARROW
    view = View("Ctrl-C ends it.", "Trial 3 (search): resync", 0.5, seconds)
    lines = Console(width=WIDTH, force_terminal=True).render_lines(view)
    shown = ["".join(segment.text for segment in line) for line in lines]
    assert said(shown) == seconds
    assert said(["no time is told, about this one"]) is None


def test_one_of_each_minute_is_judged_by_what_was_left() -> None:
    seen = [Seen(at, 300.0 - at, "") for at in range(0, 300, 7)]
    chosen = each_minute(seen, 300.0)
    assert [each.at_s for each in chosen] == [63, 126, 182, 245]
    assert all(is_near(each, 300.0) for each in chosen)
    assert is_near(Seen(100, 125, ""), 200)
    assert not is_near(Seen(100, 131, ""), 200)
    assert not is_near(Seen(100, 69, ""), 200)
