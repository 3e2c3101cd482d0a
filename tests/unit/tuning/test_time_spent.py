"""Where a run's time goes, and what is kept out of it."""

import dataclasses
import math
import random
import threading
from pathlib import Path

import fake_run
import pytest
from fake_run import Machine

from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.figure import Estimate
from autotune.problem.strategy import StrategyFactory
from autotune.stats.bounds import clearly_apart
from autotune.stats.steady_state import rate
from autotune.tuning.preload import Loading
from autotune.tuning.time_spent import MEASURING, STARTING, Spent
from benchmarks.search.insider import Insider

WITH_IDLE = (
    fake_run.WORKLOAD
    + """
[[phases]]
name = "idle"
probe = { rate_iops = 60 }
"""
)


class Idle(Machine):
    """Also measures the idle array, which may suddenly be another."""

    slower_from = 10**9

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        half = 2 if seed // 1000 >= self.slower_from else 1
        figures = {n: Estimate(e.value / half, e.spread) for n, e in result.figures.items()}
        return dataclasses.replace(result, figures=figures)


@pytest.mark.parametrize("moves", [False, True])
def test_the_idle_array_is_measured_again_only_if_the_baseline_has_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: bool
) -> None:
    monkeypatch.setattr(fake_run, "WORKLOAD", WITH_IDLE)
    machine = Idle(tmp_path, monkeypatch)
    machine.slower_from = 7 if moves else 10**9
    machine.run("random", trials=14)
    stored = machine.stored(1)
    again = [measured for _, role, _, _, measured in stored if role == "baseline"]
    assert len(again) >= 4
    assert ["idle" in phases for phases in again[:3]] == [True, True, False]
    assert ("idle" in again[3]) == moves
    # What was not measured again is known all the same.
    assert all("idle.p99" in figures for _, role, _, figures, _ in stored if role == "baseline")


def test_a_strategy_is_loaded_meanwhile_and_waited_for_when_it_is_needed() -> None:
    go_on = threading.Event()

    def load() -> StrategyFactory:
        assert go_on.wait(10)
        return Insider

    loading = Loading(load)
    loading.look()
    go_on.set()
    assert loading.wait() is Insider


def test_what_stops_a_strategy_from_loading_is_told_to_whoever_waits() -> None:
    def load() -> StrategyFactory:
        raise ValueError("no such package")

    loading = Loading(load)
    with pytest.raises(ValueError, match="no such package"):
        loading.wait()
    with pytest.raises(ValueError, match="no such package"):
        loading.look()


def test_what_breaks_off_counts_until_then() -> None:
    spent = Spent()
    spent.add(MEASURING, 10)
    with pytest.raises(ValueError, match="x"), spent.on(STARTING):
        raise ValueError("x")
    assert spent.seconds[STARTING] > 0
    assert spent.total == pytest.approx(10, abs=1)
    assert MEASURING not in spent.overhead


def seen_at(rates: list[float], seconds: int) -> Estimate:
    estimate = rate(rates[:seconds], [1.0] * seconds)
    assert estimate is not None
    return estimate


def stopped_at(before: list[float], after: list[float]) -> int:
    """The second at which a phase of 4 to 12 s is clear enough, though not steady; 13: never."""
    known = seen_at(before, 12)
    clear = (s for s in range(4, 13) if clearly_apart(seen_at(after, s), known, 0.0))
    return next(clear, 13)


def test_a_figure_that_is_twice_as_large_needs_no_steady_measuring_and_an_equal_one_does() -> None:
    rng = random.Random(0)

    def noisy(mean: float) -> list[float]:
        return [mean * math.exp(rng.gauss(0, 0.12)) for _ in range(12)]

    equal = [stopped_at(noisy(100), noisy(100)) for _ in range(400)]
    assert sum(second <= 12 for second in equal) <= 8
    far = [stopped_at(noisy(100), noisy(200)) for _ in range(400)]
    assert sum(second <= 6 for second in far) > 300


def test_what_ends_a_clear_phase_hardly_flatters_it() -> None:
    rng = random.Random(1)
    ratios = []
    for _ in range(600):
        rates = [[m * math.exp(rng.gauss(0, 0.12)) for _ in range(12)] for m in (100, 150)]
        end = min(12, stopped_at(*rates))
        ratios.append(math.log(seen_at(rates[1], end).value / seen_at(rates[0], 12).value))
    assert math.exp(sum(ratios) / len(ratios)) == pytest.approx(1.5, rel=0.03)
