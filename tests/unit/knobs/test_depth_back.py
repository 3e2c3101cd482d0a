"""What mq-deadline's async_depth was before a queue's length was set, however the kernel has it."""

import pytest

from autotune.knobs.resets import depth_back


@pytest.mark.parametrize(
    ("first", "follows"),
    [
        ("256", lambda _now, before: before),
        ("256", lambda now, _before: now),
        ("192", lambda _now, before: str(3 * int(before) // 4)),
        ("192", lambda now, _before: str(3 * int(now) // 4)),
    ],
)
@pytest.mark.parametrize("lengths", [["64"], ["64", "512"], ["512", "32", "64"]])
def test_it_is_what_it_was_whatever_it_follows(
    first: str, follows: object, lengths: list[str]
) -> None:
    before, depth = "256", first
    for length in lengths:
        depth = follows(length, before)  # type: ignore[operator]
        before = length
    assert depth_back(depth, lengths, "256") == first


def test_what_somebody_has_set_stays() -> None:
    assert depth_back("50", ["64"], "256") == "50"
