"""Latencies of those who send nothing while they wait."""

from hypothesis import given
from hypothesis import strategies as st

from autotune.stats.histogram import difference, total, with_who_would_wait


def test_who_would_have_come_while_one_waited_waits_for_the_rest() -> None:
    # Four a second: one that waits for a second kept four more from coming.
    found = with_who_would_wait({1_000_000_000: 3, 20_000_000: 100}, 4)
    assert found == {
        1_000_000_000: 3,
        875_000_000: 3,
        625_000_000: 3,
        375_000_000: 3,
        125_000_000: 3,
        20_000_000: 100,
    }


@given(
    st.dictionaries(st.integers(1, 10**10), st.integers(1, 50), max_size=8),
    st.dictionaries(st.integers(1, 10**10), st.integers(1, 50), max_size=8),
    st.integers(1, 20),
)
def test_so_corrected_counters_subtract(
    early: dict[int, int], new: dict[int, int], each_iops: int
) -> None:
    late = total([early, new])
    corrected = [with_who_would_wait(h, each_iops) for h in (early, late, new)]
    assert difference(corrected[1], corrected[0]) == corrected[2]
