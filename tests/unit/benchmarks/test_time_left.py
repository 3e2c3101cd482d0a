"""What the benchmark of the time left reads off a screen, and how it judges that."""

import pytest

from autotune.report.live_view import NARROW, View, show_left
from benchmarks.time_left import WIDTH, Seen, doing, each_minute, said


@pytest.mark.parametrize(
    ("least_s", "most_s"),
    [
        *((seconds, seconds) for seconds in (7.0, 40.0, 100.0, 840.0, 3900.0)),
        *((7.0, 40.0), (50.0, 840.0), (300.0, 840.0), (100.0, 200.0), (2400.0, 3900.0)),
    ],
)
def test_it_reads_what_a_run_shows(least_s: float, most_s: float) -> None:
    from rich.console import Console  # noqa: PLC0415

    assert WIDTH >= NARROW
    view = View("Ctrl-C ends it.", "Trial 18 (proof: original): resync", 0.5, least_s, most_s)
    lines = Console(width=WIDTH, force_terminal=True).render_lines(view)
    shown = ["".join(segment.text for segment in line) for line in lines]
    assert doing(shown) == "18, proof: original"
    found = said(shown)
    assert found is not None
    assert "resync " in shown[0]
    assert found[:2] == (least_s, most_s)
    assert found[2] == show_left(least_s, most_s)
    assert said(["no time is told, about this one"]) is None


def test_one_of_each_minute_is_judged_by_what_was_left() -> None:
    seen = [Seen(at, 300.0 - at, 300.0 - at, "") for at in range(0, 300, 7)]
    chosen = each_minute(seen, 300.0)
    assert [each.at_s for each in chosen] == [63, 126, 182, 245]
    assert all(each.has(300.0 - each.at_s) for each in chosen)
    one = Seen(100, 100, 100, "")
    assert [one.has(left) for left in (76, 77, 142, 143)] == [False, True, True, False]
    two = Seen(100, 60, 140, "")
    assert [two.has(left) for left in (53, 54, 154, 156)] == [False, True, True, False]
    assert [two.is_near(left) for left in (76, 77)] == [False, True]
