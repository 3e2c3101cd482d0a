"""What other ceilings would give: said with numbers, and with the option that asks for it."""

from synthetic_run import BASELINE, MS, figure, figures

from autotune.problem.ceilings import parse_ceiling
from autotune.problem.figure import Estimate, Figure
from autotune.results.offers import offers, roomy, was_met
from autotune.results.pareto import Point

FIGURES = [
    Figure("write.throughput", "write", "throughput", 1.0),
    Figure("write.p99", "write", "latency", ratio=1.1),
    Figure("resync.throughput", "resync", "throughput", 1.0),
    Figure(**figure("resync.p99", ceiling=50 * MS)),
]


def point(
    gain: float, write: float, write_ms: float, sync: float, sync_ms: float, stripes: int = 4096
) -> Point:
    shown = figures(write, write_ms, sync, sync_ms)
    setting = {**BASELINE, "stripe_cache_size": stripes}
    return Point(setting, Estimate(gain, 0.02), Estimate(1.0, 0.02), shown, (3,), False)


HOME = point(1.0, 100, 80, 100, 40, stripes=256)


def test_the_original_settings_are_no_offer() -> None:
    kept = point(1.5, 200, 80, 200, 160)
    assert offers(FIGURES, [HOME, kept], kept, HOME) == []


def test_throughput_that_a_ceiling_costs_is_named_with_the_option() -> None:
    (offer,) = offers(FIGURES, [HOME, point(1.2, 140, 170, 100, 40)], HOME, HOME)
    assert offer.text == (
        "--p99-ceiling write=210ms: write.throughput ×1.40, with write.p99 170 ms instead of "
        "80.0 ms"
    )
    assert offer.setting["stripe_cache_size"] == 4096


def test_all_that_becomes_faster_is_named_the_most_first() -> None:
    (offer,) = offers(FIGURES, [HOME, point(1.4, 125, 170, 160, 40)], HOME, HOME)
    gained = "resync.throughput ×1.60 and write.throughput ×1.25, with write.p99 170 ms"
    assert gained in offer.text


def test_no_other_ceiling_is_offered_for_less_than_holds_the_ones_there_are() -> None:
    over, holding = point(1.2, 140, 170, 100, 40), point(1.3, 160, 82, 100, 40, stripes=512)
    assert offers(FIGURES, [HOME, over], HOME, HOME)
    assert not offers(FIGURES, [HOME, over, holding], HOME, HOME)


def test_latency_that_throughput_costs_is_named_too() -> None:
    (offer,) = offers(FIGURES, [HOME, point(0.5, 100, 80, 25, 16)], HOME, HOME)
    assert offer.text == (
        "--p99-ceiling resync=20ms: resync.p99 16.0 ms instead of 40.0 ms, with "
        "resync.throughput 25.0 MB/s instead of 100 MB/s"
    )


def test_what_is_little_or_costs_nothing_is_no_offer() -> None:
    assert not offers(FIGURES, [HOME, point(1.05, 110, 170, 100, 40)], HOME, HOME)
    assert not offers(FIGURES, [HOME, point(1.4, 190, 80, 100, 40)], HOME, HOME)


def test_an_offered_limit_is_one_that_the_option_takes_and_leaves_room() -> None:
    for ns in (90e3, 999e3, 1e6, 16e6, 80e6, 170e6, 1.3e9):
        limit = parse_ceiling(roomy(ns)).limit_ns
        assert limit is not None
        assert 1.15 * ns <= limit <= 1.4 * ns


def test_a_p99_that_no_trial_measured_is_no_offer() -> None:
    """Drift taken out, it may be far below each trial's own."""
    calm = point(0.5, 100, 80, 25, 16)
    for shown_ms, met in ((16, True), (19, True), (20, False), (40, False)):
        seen = figures(100, 80, 25, shown_ms)
        assert was_met(FIGURES, calm, [seen]) is met
        assert was_met(FIGURES, calm, [seen, figures(100, 90, 25, 12)])
    assert was_met(FIGURES, calm, [])
