"""Both sides of a proof in a report, whatever phases showed."""

import pytest
from matplotlib.figure import Figure

from autotune.problem.course import Course
from autotune.report import load_pictures
from autotune.report.compared import Sides, distributions, seconds

SIDES = Sides((1, 4), (2, 3), "so", True)
WHOLE = Course((1.0, 0.5), (10.0, 20.0), (7, 9), (256, 300), {5: 3, 7: 1}, {})


def test_seconds_are_those_of_the_first_trial_on_each_side() -> None:
    other = Course((1.0,), (99.0,))
    courses = {1: {"write": WHOLE}, 2: {"write": WHOLE}, 3: {"write": other}, 4: {"write": other}}
    (write,) = seconds(courses, SIDES)
    assert write["before"] == write["after"]
    assert write["before"] == {
        **{"end_s": [1.0, 1.5], "rate": [10, 40]},
        **{"slowest_ns": [7, 9], "stripes": [256, 300]},
    }


@pytest.mark.parametrize(
    "nothing",
    [Course((), ()), Course((1.0, 1.0), (0.0, 0.0)), Course((1.0, 1.0), (0.0, 0.0), (5,))],
)
def test_a_phase_that_showed_nothing_is_left_out(nothing: Course) -> None:
    assert seconds({1: {"idle": nothing}, 2: {"idle": WHOLE}}, SIDES) == []
    (idle,) = seconds({1: {"idle": WHOLE}, 2: {"idle": nothing}}, SIDES)
    assert "after" not in idle


def test_a_line_is_not_at_the_edge_of_its_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    (write,) = seconds({1: {"write": WHOLE}, 2: {"write": WHOLE}}, SIDES)
    for side in ("before", "after"):
        write[side]["stripes"] = [264, 265]
    drawn: list[Figure] = []
    monkeypatch.setattr(load_pictures, "picture", lambda name, drawing, *_: drawn.append(drawing))
    load_pictures.course("name", {}, write)
    assert drawn[0].axes[1].get_ylim()[1] > 1.05 * 265


def test_distributions_are_of_all_trials_of_a_side() -> None:
    courses = {1: {"write": WHOLE}, 4: {"write": WHOLE}, 3: {"write": WHOLE}}
    (reads,) = distributions(courses, SIDES)
    assert reads["before"] == {"requests": 8, "slower": [(5, 1.0), (5, 0.25), (7, 0.125)]}
    assert reads["after"]["requests"] == 4


def test_a_curve_has_no_more_points_than_can_be_seen() -> None:
    many = Course((1.0,), (1.0,), (), (), dict.fromkeys(range(1, 20000), 1))
    (reads,) = distributions({1: {"write": many}}, SIDES)
    shares = [share for _, share in reads["before"]["slower"]]
    assert len(shares) < 110
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[-1]) == (1.0, pytest.approx(1 / 19999))
