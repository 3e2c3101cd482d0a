"""What a run says of ceilings that the original settings break, perhaps only at first."""

from types import SimpleNamespace
from typing import Any, cast

from autotune.problem.figure import Estimate, Figure
from autotune.stats.drift import Anchor
from autotune.tuning.reasons import broke, still_broken, varied

MS = 1e6
FIGURE = Figure("resync.p99", "resync", "latency", ceiling=600 * MS)
HOME, OTHER = {"scheduler": "none"}, {"scheduler": "kyber"}


def ms(value: float) -> dict[str, Estimate]:
    return {FIGURE.name: Estimate(value * MS, 0.1)}


def trials(*shown: tuple[dict[str, str], float]) -> Any:
    records = [
        SimpleNamespace(number=number, requested=setting, figures=ms(value), measured=("resync",))
        for number, (setting, value) in enumerate(shown, 1)
    ]
    return cast(Any, SimpleNamespace(records=records))


def test_what_only_the_first_trials_broke_is_held() -> None:
    """Two trials in a bad minute, and four more that show another picture: no claim is left."""
    assert broke([FIGURE], ms(626), ms(489)) == [
        "The first trials of the original settings broke the ceiling for resync.p99 (626 ms); by "
        "all that was measured, they hold it (489 ms)."
    ]
    assert not still_broken([FIGURE], ms(489), trials((HOME, 626)), HOME)
    assert not broke([FIGURE], ms(489), ms(489))


def test_what_is_broken_in_the_end_is_told_as_it_was_measured_in_the_end() -> None:
    assert "it shows 700 ms where 600 ms is allowed" in broke([FIGURE], ms(626), ms(700))[0]


def test_how_near_another_setting_came_is_no_word_of_the_original_ones() -> None:
    tried = trials((HOME, 626), (OTHER, 650), (HOME, 279))
    said = still_broken([FIGURE], ms(626), tried, HOME)
    assert said.endswith(
        "(626 ms), and the lowest that another combination showed is 650 ms (trial 2)"
    )
    alone = still_broken([FIGURE], ms(626), trials((HOME, 626)), HOME)
    assert alone.endswith(
        "the original settings break the ceiling of 600 ms for resync.p99 (626 ms)"
    )


def test_how_far_the_array_itself_varied_is_told() -> None:
    """Also between its first two measurements, which are what noise is known by."""

    def said(*shown: float, role: str = "baseline") -> list[str]:
        records = [
            SimpleNamespace(role=role, figures=ms(value), measured=("resync",)) for value in shown
        ]
        anchors = [Anchor(float(n), record.figures) for n, record in enumerate(records)]
        run = SimpleNamespace(records=records, originals=anchors)
        return varied([FIGURE], cast(Any, run))

    (told,) = said(49, 207, 142)
    assert "With the original settings, it showed: resync.p99 49.0 ms to 207 ms (3 times)." in told
    assert not said(100, 120, 110)
    assert not said(49, 207, 142, role="search")
    # What has drifted is told as such.
    assert not said(100, 101, 300)
