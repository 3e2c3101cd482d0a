"""What mattered in a run whose truth is known."""

import dataclasses
import math
import random

import pytest

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import Dimension, Problem
from autotune.problem.trial import Status, Trial
from autotune.strategies.surrogate.importance import weigh

LADDER: tuple[Value, ...] = (1, 2, 4, 8, 16)
MOVES = frozenset({"write.throughput"})
PROBLEM = Problem(
    dimensions=tuple(Dimension(knob, LADDER, True, MOVES) for knob in ("strong", "weak", "dead")),
    figures=(Figure("write.throughput", "write", "throughput", 1.0),),
    baseline={"strong": 1, "weak": 1, "dead": 1},
    allowed=lambda setting: True,
    trials=40,
    seed=1,
)
WINNER: Setting = {"strong": 16, "weak": 16, "dead": 16}


def measured(setting: Setting, rng: random.Random) -> Trial:
    log = 0.2 * math.log2(int(setting["strong"])) + 0.05 * math.log2(int(setting["weak"]))
    value = Estimate(1e8 * math.exp(log + rng.gauss(0, 0.02)), 0.02)
    return Trial(setting, Status.COMPLETE, {"write.throughput": value})


@pytest.fixture
def trials() -> list[Trial]:
    rng = random.Random(5)
    settings: list[Setting] = [PROBLEM.baseline, WINNER]
    knobs = [dimension.knob for dimension in PROBLEM.dimensions]
    settings += [{knob: rng.choice(LADDER) for knob in knobs} for _ in range(20)]
    # A search ends around its winner.
    settings += [{**WINNER, "dead": value} for value in LADDER] * 2
    return [measured(setting, rng) for setting in settings]


def test_each_knob_gets_what_it_brought(trials: list[Trial]) -> None:
    shares = weigh(PROBLEM, trials, WINNER).shares
    assert [share.knob for share in shares] == ["strong", "weak", "dead"]
    for share, true in zip(shares, [0.8, 0.2, 0.0], strict=True):
        assert abs(math.log(share.gain.value) - true) < 3 * share.gain.spread + 0.02
        assert share.gain.spread < 0.1


def test_only_the_knob_that_did_nothing_can_go_back(trials: list[Trial]) -> None:
    shares = {share.knob: share for share in weigh(PROBLEM, trials, WINNER).shares}
    assert shares["strong"].needed
    assert shares["weak"].needed
    assert not shares["dead"].needed


def test_the_baseline_owes_nothing_to_any_knob(trials: list[Trial]) -> None:
    assert weigh(PROBLEM, trials, PROBLEM.baseline).shares == ()


def noisy(seed: int) -> list[Trial]:
    """Few trials, whose noise is like what the weak knob brings."""
    rng = random.Random(seed)
    knobs = [dimension.knob for dimension in PROBLEM.dimensions]
    settings: list[Setting] = [PROBLEM.baseline, PROBLEM.baseline, WINNER, WINNER]
    settings += [{knob: rng.choice(LADDER) for knob in knobs} for _ in range(8)]
    shown = []
    for trial in (measured(setting, rng) for setting in settings):
        value = trial.figures["write.throughput"].value * math.exp(rng.gauss(0, 0.12))
        shown.append(dataclasses.replace(trial, figures={"write.throughput": Estimate(value, 0.1)}))
    return shown


@pytest.mark.parametrize("seed", range(8))
def test_what_stays_is_needed_without_what_has_gone_back_too(seed: int) -> None:
    trials = noisy(seed)

    def needed(setting: Setting) -> Setting:
        shares = weigh(PROBLEM, trials, setting).shares
        return {**setting, **{share.knob: 1 for share in shares if not share.needed}}

    smaller = needed(WINNER)
    # That nothing is needed by itself says nothing of all of it together.
    assert needed(smaller) in (smaller, PROBLEM.baseline)
