"""When a search gives up: where nothing but the baseline holds, not where something does."""

import math
import random

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.problem.strategy import Dimension, Problem
from autotune.problem.trial import Status, Trial
from autotune.strategies.bayes import Bayes

CEILING_NS = 31e6
FIGURES = (
    Figure("write.throughput", "write", "throughput", 1.0),
    Figure("resync.p99", "resync", "latency", 0.0, CEILING_NS),
)
NAMES = frozenset(figure.name for figure in FIGURES)
SIZES = tuple(64 * 2**step for step in range(10))
BASELINE = {"stripe_cache_size": 256, "sync_speed_max": 200_000}


def problem(careful: bool) -> Problem:
    return Problem(
        (
            Dimension("stripe_cache_size", SIZES, True, NAMES),
            Dimension("sync_speed_max", tuple(12_500 * 2**n for n in range(9)), True, NAMES),
        ),
        FIGURES,
        BASELINE,
        lambda setting: True,
        20,
        3,
        careful=careful,
    )


def tried(careful: bool, latency_of_change: float) -> int:
    """Trials until the search ends, where any change multiplies the latency so."""
    given = problem(careful)
    strategy, rng = Bayes(given), random.Random(1)

    def measured(setting: Setting) -> Trial:
        p99 = 30e6 * (1.0 if setting == BASELINE else latency_of_change)
        figures = {"write.throughput": 1e8 * int(setting["stripe_cache_size"]) ** 0.1}
        figures["resync.p99"] = p99
        shown = {n: Estimate(v * math.exp(rng.gauss(0, 0.03)), 0.03) for n, v in figures.items()}
        return Trial(dict(setting), Status.COMPLETE, shown)

    strategy.tell(measured(given.baseline))
    for count in range(given.trials):
        setting = strategy.ask()
        if setting is None:
            return count
        strategy.tell(measured(setting))
    return given.trials


def test_a_search_ends_soon_where_every_change_breaks_a_ceiling() -> None:
    assert 1 <= tried(careful=False, latency_of_change=1.4) <= 5
    assert 1 <= tried(careful=True, latency_of_change=1.4) <= 5


def test_it_goes_on_where_changes_hold() -> None:
    assert tried(careful=False, latency_of_change=0.7) > 5
    assert tried(careful=True, latency_of_change=0.7) > 5
