"""The last trials of a search, repeats, and what is carried over."""

import dataclasses

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.problem.strategy import Dimension, Problem
from autotune.problem.trial import Status, Trial
from autotune.strategies.bayes import Bayes
from autotune.strategies.surrogate.belief import Beliefs

READ, WRITE = "read.throughput", "write.throughput"
P99 = "resync.p99"
BASELINE = {"read_ahead_kb": 512, "stripe_cache_size": 256}
BETTER = {"read_ahead_kb": 512, "stripe_cache_size": 1024}


def problem(carried: bool = True, ceiling_ns: float = 30e6) -> Problem:
    return Problem(
        (
            Dimension("read_ahead_kb", (256, 512, 1024), True, frozenset({READ})),
            Dimension("stripe_cache_size", (256, 512, 1024), True, frozenset({WRITE, P99})),
        ),
        (
            Figure(READ, "read", "throughput", 1.0),
            Figure(WRITE, "write", "throughput", 1.0),
            Figure(P99, "resync", "latency", 0.0, ceiling_ns),
        ),
        BASELINE,
        lambda _setting: True,
        4,
        3,
        seconds={"read": 5.0, "write": 5.0, "resync": 30.0},
        carried=carried,
    )


def trial(setting: Setting, write: float, p99_ms: float = 10.0, spread: float = 0.05) -> Trial:
    figures = {READ: Estimate(1e8, spread), WRITE: Estimate(write * 1e8, spread)}
    figures[P99] = Estimate(p99_ms * 1e6, spread)
    return Trial(setting, Status.COMPLETE, figures)


def beliefs(given: Problem, *trials: Trial) -> Beliefs:
    found = Beliefs(given)
    for told in trials:
        found.add(told)
    return found


def test_what_is_carried_over_tells_nothing_and_what_is_asked_for_again_does() -> None:
    ahead = {**BASELINE, "read_ahead_kb": 1024}
    for carried in (True, False):
        known = beliefs(problem(carried), trial(BASELINE, 1.0), trial(BETTER, 1.2))
        read, write, _ = known.evidence
        assert known.shift(read, [ahead], [BASELINE])[0, 0] > 0
        assert (known.shift(write, [ahead], [BASELINE])[0, 0] > 0) == (not carried)
        # A repeat: all of it is measured again.
        assert known.shift(write, [BETTER], [BASELINE])[0, 0] > 0


def test_the_last_trials_of_a_search_are_of_the_best() -> None:
    strategy = Bayes(dataclasses.replace(problem(), trials=1))
    strategy.tell(trial(BASELINE, 1.0))
    strategy.tell(trial(BETTER, 1.5))
    asked = strategy.ask()
    assert asked is not None
    assert asked["stripe_cache_size"] == 1024


def test_where_the_baseline_breaks_its_ceiling_what_holds_is_looked_for_to_the_end() -> None:
    slower = {**BASELINE, "stripe_cache_size": 512}
    strategy = Bayes(dataclasses.replace(problem(ceiling_ns=5e6), trials=3))
    for _ in range(2):
        strategy.tell(trial(BASELINE, 1.0, p99_ms=20.0))
    strategy.tell(trial(BETTER, 1.0, p99_ms=21.0))
    strategy.tell(trial(slower, 0.6, p99_ms=4.3))
    asked = strategy.ask()
    assert asked is not None
    assert asked["stripe_cache_size"] == 512
    strategy.tell(trial(slower, 0.6, p99_ms=4.2))
    assert strategy.recommend().setting["stripe_cache_size"] == 512
