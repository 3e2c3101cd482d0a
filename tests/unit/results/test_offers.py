"""What other ceilings would give."""

from autotune.problem.figure import Estimate, Figure
from autotune.results.offers import offers
from autotune.results.pareto import Point

FIGURES = [
    Figure("write.throughput", "write", "throughput", 1.0),
    Figure("resync.p99", "resync", "latency", ceiling=600e6),
]


def point(number: int, stripes: int, write: float, p99_ms: float) -> Point:
    figures = {
        "write.throughput": Estimate(write, 0.01),
        "resync.p99": Estimate(p99_ms * 1e6, 0.01),
    }
    gain, latency = Estimate(write / 50e6, 0.01), Estimate(p99_ms / 120, 0.01)
    return Point({"stripe_cache_size": stripes}, gain, latency, figures, (number,), False)


HOME, KEPT = point(1, 256, 50e6, 120.0), point(2, 4096, 100e6, 470.0)


def test_a_calmer_setting_is_offered_with_what_it_costs() -> None:
    (offer,) = offers(FIGURES, [HOME, KEPT, point(3, 1024, 80e6, 200.0)], KEPT, HOME)
    assert offer.trials == (3,)
    assert "write.throughput may be 80.0 MB/s instead of 100 MB/s" in offer.text


def test_the_original_settings_are_no_offer() -> None:
    assert offers(FIGURES, [HOME, KEPT], KEPT, HOME) == []
