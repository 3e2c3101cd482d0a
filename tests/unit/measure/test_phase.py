"""What is left out at the start of a phase. Whole phases: `tests/lab/guest_filesystem.py`."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from autotune.measure.fio import Target
from autotune.measure.phase import LOAD_RAMP_S, RAMP_S, SETTLE_S, Bench, _Start
from autotune.measure.workload import Phase

CHECK = Phase.model_validate({"name": "resync", "check": True, "probe": {"rate_iops": 50}})
LOAD = Phase.model_validate({"name": "read", "load": {"rw": "read", "block_kib": 64}})
NOWHERE = Target(Path("/dev/null"), 0)
BENCH = Bench("md0", NOWHERE, NOWHERE, cast(Any, None), *[cast(Any, None)] * 3)


def settled_after_s(phase: Phase, bench: Bench, grown: Callable[[float], int | None]) -> float:
    """When a phase begins to count, if the cache has so many stripes after so many seconds."""
    passed = 0.0
    start = _Start(phase, dataclasses.replace(bench, stripes=lambda: grown(passed)))
    while not start.is_over(passed):
        passed += 1.0
    return passed


GROWS = dataclasses.replace(BENCH, grows=True)


def test_a_load_counts_at_once() -> None:
    assert settled_after_s(LOAD, GROWS, lambda s: int(256 * 2**s)) == LOAD_RAMP_S


def test_a_check_without_a_stripe_cache_counts_as_soon_as_it_is_up_to_speed() -> None:
    assert settled_after_s(CHECK, BENCH, lambda _s: None) == RAMP_S


def test_a_real_sync_has_long_settled() -> None:
    live = dataclasses.replace(GROWS, recovery=cast(Any, object()))
    assert settled_after_s(CHECK, live, lambda s: int(256 * 2**s)) == RAMP_S


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
    assert least_s <= settled_after_s(CHECK, GROWS, grown) <= most_s
