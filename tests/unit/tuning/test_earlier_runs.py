"""What earlier runs say of a new one."""

from datetime import timedelta
from typing import Any

import pytest
from synthetic_run import BASELINE, START, baseline, figures, problem, run, trial

from autotune.problem.figure import Estimate, Figure
from autotune.problem.strategy import Dimension, Problem
from autotune.problem.trial import Earlier, Status, Trial
from autotune.results.stored_run import StoredProblem
from autotune.strategies.bayes import Bayes
from autotune.tuning.earlier_runs import DOUBT, DOUBT_OTHER, earlier_trials

BETTER = {"stripe_cache_size": 4096, "sync_speed_max": 200000}
LATER = START + timedelta(days=3)


def document(phases: int = 2, **changes: Any) -> dict[str, Any]:
    return {**problem(), "workload": {"name": "balanced", "phases": [{"n": phases}]}, **changes}


def found(
    now: dict[str, Any], uuid: str = "u", then: dict[str, Any] | None = None
) -> list[Earlier]:
    trials = [
        baseline(1),
        baseline(2),
        trial(3, "search", BETTER, figures(200, 10, 100, 20)),
    ]
    earlier = run("done", then or document())
    stored = StoredProblem.model_validate(now)
    return list(earlier_trials(stored, uuid, "print", LATER, [(earlier, trials)]))


def test_a_trial_counts_relative_to_what_are_the_originals_now() -> None:
    (known,) = found(document())
    assert known.setting == BETTER
    assert known.figures["write.throughput"].value == pytest.approx(2.0, rel=0.01)
    assert DOUBT <= known.doubt < DOUBT * 1.1


def test_when_the_winner_has_become_the_original_the_rest_is_seen_from_there() -> None:
    (known,) = found(document(baseline=BETTER))
    assert known.setting == BASELINE
    assert known.figures["write.throughput"].value == pytest.approx(0.5, rel=0.01)


def test_another_array_is_doubted_more() -> None:
    (known,) = found(document(), uuid="another")
    assert known.doubt > DOUBT_OTHER


@pytest.mark.parametrize(
    "then",
    [
        document(phases=3),
        document(array={**problem()["array"], "media": "ssd"}),
        document(array={**problem()["array"], "level": "raid5"}),
        {"workload": 7},
    ],
    ids=["phases", "media", "level", "rubbish"],
)
def test_what_cannot_be_compared_is_left_out(then: dict[str, Any]) -> None:
    assert found(document(), then=then) == []


def test_originals_that_were_never_measured_then_say_nothing() -> None:
    assert found(document(baseline={**BASELINE, "stripe_cache_size": 1024})) == []


def asked(earlier: tuple[Earlier, ...]) -> int:
    """The stripe cache that is tried first."""
    sizes = tuple(64 * 2**n for n in range(10))
    known = Problem(
        (Dimension("stripe_cache_size", sizes, True, frozenset({"write.throughput"})),),
        (Figure("write.throughput", "write", "throughput", 1.0),),
        {"stripe_cache_size": 256},
        lambda _: True,
        10,
        0,
        earlier=earlier,
    )
    strategy = Bayes(known)
    for _ in range(2):
        of_baseline = {"write.throughput": Estimate(1e8, 0.02)}
        strategy.tell(Trial({"stripe_cache_size": 256}, Status.COMPLETE, of_baseline))
    setting = strategy.ask()
    assert setting is not None
    assert strategy.recommend().setting == {"stripe_cache_size": 256}
    return int(setting["stripe_cache_size"])


def test_a_search_begins_where_earlier_runs_ended_but_recommends_nothing_from_them() -> None:
    def ratio(size: int, value: float) -> Earlier:
        figures = {"write.throughput": Estimate(value, 0.02)}
        return Earlier({"stripe_cache_size": size}, figures, DOUBT)

    # The rule of thumb would have it the other way round.
    small = tuple(ratio(64 * 2**n, 3.0 - n) for n in range(2))
    large = tuple(ratio(64 * 2**n, 0.5) for n in range(3, 10))
    assert asked((*small, *large)) <= 128
    assert asked(()) > 256
