"""What is left out at the start of a phase. Whole phases: `tests/lab/guest_filesystem.py`."""

from collections.abc import Callable

import pytest

from autotune.measure.settling import CHECK_RAMP_S, LOAD_RAMP_S, SETTLE_S, Settling


def settled_after_s(check: bool, grows: bool, grown: Callable[[float], int | None]) -> float:
    """When a phase begins to count, if the cache has so many stripes after so many seconds."""
    passed = 0.0
    settling = Settling(check, grows, lambda: grown(passed))
    while not settling.is_over(passed):
        passed += 1.0
    return passed


def test_a_load_counts_at_once() -> None:
    assert settled_after_s(False, True, lambda s: int(256 * 2**s)) == LOAD_RAMP_S


def test_a_check_without_a_stripe_cache_counts_as_soon_as_it_is_up_to_speed() -> None:
    assert settled_after_s(True, False, lambda _s: None) == CHECK_RAMP_S


@pytest.mark.parametrize(
    ("grown", "least_s", "most_s"),
    [
        (lambda _s: 1024, 4, 5),
        # As it was seen in the lab.
        (lambda s: 256 + 40 * s, 15, SETTLE_S),
        (lambda s: int(256 * 2**s), SETTLE_S, SETTLE_S),
        # The kernel does not tell.
        (lambda _s: None, SETTLE_S, SETTLE_S),
    ],
    ids=["large", "grows", "grows on", "not told"],
)
def test_a_check_counts_once_the_stripe_cache_has_grown(
    grown: Callable[[float], int | None], least_s: float, most_s: float
) -> None:
    assert least_s <= settled_after_s(True, True, grown) <= most_s
