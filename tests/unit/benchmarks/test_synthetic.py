"""The synthetic arrays are what they are said to be."""

import random

import numpy as np
import pytest

from autotune.problem.trial import Status
from benchmarks.search.instance import certain_after, judge, measured
from benchmarks.search.synthetic import KINDS, SyntheticArray
from benchmarks.search.table import WORTH

ARRAYS = [SyntheticArray(seed) for seed in range(36)]


@pytest.mark.parametrize("array", ARRAYS[: len(KINDS)], ids=lambda array: array.name)
def test_the_baseline_is_allowed_holds_and_is_the_mark(array: SyntheticArray) -> None:
    problem = array.problem(10)
    assert problem.allowed(problem.baseline)
    truth = judge(array, problem, problem.baseline)
    assert truth.gain == pytest.approx(1.0)
    assert truth.holds


@pytest.mark.parametrize("array", ARRAYS[: len(KINDS)], ids=lambda array: array.name)
def test_single_settings_agree_with_the_whole_landscape(array: SyntheticArray) -> None:
    problem, every = array.problem(10), array.every()
    gains, holds = array.landscape()
    for place in random.Random(1).sample(range(len(gains)), 20):
        setting = {k: column[place].item() for k, column in every.items()}
        assert problem.allowed(setting)
        truth = judge(array, problem, setting)
        assert truth.gain == pytest.approx(float(np.exp(gains[place])))
        assert truth.holds == bool(holds[place])
        assert truth.gain <= array.optimum * 1.000001 or not truth.holds


def test_nothing_beats_the_baseline_where_it_is_best() -> None:
    kinds = {array.kind: array for array in ARRAYS}
    assert kinds["default-best"].optimum == pytest.approx(1.0)
    assert kinds["tight"].optimum == pytest.approx(1.0)
    assert kinds["tight"].landscape()[1].sum() == 1


def test_the_family_is_as_hard_as_it_is_said_to_be() -> None:
    holding = [array.landscape()[1].mean() for array in ARRAYS if array.kind != "tight"]
    assert 0.38 < np.mean(holding) < 0.52
    nearly = []
    for array in ARRAYS:
        if array.optimum >= WORTH:
            gains, holds = array.landscape()
            good = np.expm1(gains) >= 0.8 * (array.optimum - 1.0)
            nearly.append(np.mean(holds & good))
    assert 0.003 < np.mean(nearly) < 0.008


def test_repeats_show_the_noise_that_was_asked_for() -> None:
    array = ARRAYS[0]
    rng = random.Random(1)
    shown = [array.measure(array.baseline, 0, rng) for _ in range(400)]
    reads = np.log([figures["read.throughput"].value for figures in shown])
    assert np.std(reads) == pytest.approx(0.08, rel=0.15)
    spreads = [figures["read.throughput"].spread for figures in shown]
    assert 0.7 * 0.08 < np.mean(spreads) < 0.9 * 0.08


def test_a_trial_far_over_a_ceiling_is_ended_and_tells_what_was_learnt() -> None:
    array = next(array for array in ARRAYS if array.kind == "tight")
    problem = array.problem(10)
    far = {**problem.baseline, "nr_requests": 1024, "scheduler": "bfq"}
    tried = measured(array, problem, far, 1, random.Random(1))
    assert tried.truth.strain > 1.7
    assert tried.trial.status == Status.ABORTED
    assert "mix.p99" in tried.trial.figures
    assert "resync.throughput" not in tried.trial.figures
    assert 0 < tried.over_s < sum(problem.seconds.values())


def test_the_further_over_a_ceiling_the_sooner_that_is_certain() -> None:
    after = [certain_after(over) for over in (1.0, 1.1, 1.3, 2.0, 4.0)]
    assert after == sorted(after, reverse=True)
    assert after[-1] < 5.0 < after[1]


def test_ceilings_of_a_default_run_are_relative_to_the_baseline() -> None:
    array = SyntheticArray(0, ratio=1.1)
    problem = array.problem(10)
    assert {f.ratio for f in problem.figures if f.limited} == {1.1}
    assert judge(array, problem, problem.baseline).strain == pytest.approx(1 / 1.1)


def test_the_same_seed_is_the_same_array() -> None:
    assert SyntheticArray(5).optimum == ARRAYS[5].optimum
    assert SyntheticArray(5).truth(ARRAYS[5].baseline) == ARRAYS[5].truth(ARRAYS[5].baseline)
