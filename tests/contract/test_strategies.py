"""What every strategy must do, whatever its idea."""

import math
import random
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

import pytest

from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value, setting_key
from autotune.problem.strategy import Dimension, Problem, Strategy, StrategyFactory
from autotune.problem.trial import Status, Trial

ENTRY_POINTS = {point.name: point for point in entry_points(group="autotune.strategies")}

CACHE = Dimension(
    "stripe_cache_size",
    (128, 256, 512, 1024, 2048, 4096, 8192),
    True,
    frozenset({"write.throughput", "resync.throughput", "resync.p99"}),
)
SPEED = Dimension(
    "sync_speed_max",
    (10_000, 50_000, 200_000, 800_000),
    True,
    frozenset({"resync.throughput", "resync.p99"}),
)
AHEAD = Dimension("read_ahead_kb", (0, 128, 512, 2048), True, frozenset({"read.throughput"}))
SCHEDULER = Dimension(
    "scheduler",
    ("none", "mq-deadline", "bfq"),
    False,
    frozenset({"read.throughput", "write.throughput", "resync.throughput", "resync.p99"}),
)
FIGURES = (
    Figure("read.throughput", "read", "throughput", 1.0),
    Figure("write.throughput", "write", "throughput", 2.0),
    Figure("resync.throughput", "resync", "throughput", 1.0),
    Figure("resync.p99", "resync", "latency", 0.0, 40e6),
)
BASELINE: dict[str, Value] = {
    "stripe_cache_size": 256,
    "sync_speed_max": 200_000,
    "read_ahead_kb": 128,
    "scheduler": "mq-deadline",
}


def problem(**changes: object) -> Problem:
    parts: dict[str, object] = {
        "dimensions": (CACHE, SPEED, AHEAD, SCHEDULER),
        "figures": FIGURES,
        "baseline": BASELINE,
        "allowed": lambda setting: True,
        "trials": 8,
        "seed": 7,
    }
    return Problem(**{**parts, **changes})  # type: ignore[arg-type]


def measure(setting: Setting, rng: random.Random) -> dict[str, Estimate]:
    """A made-up array: more cache writes faster, more sync speed delays the probe."""
    cache = math.log2(int(setting["stripe_cache_size"]) / 256)
    speed = int(setting["sync_speed_max"])
    bfq = setting["scheduler"] == "bfq"
    true = {
        "read.throughput": 2e8 * (1 + 0.1 * math.log2(int(setting["read_ahead_kb"]) / 128 + 1)),
        "write.throughput": 1e8 * (1 + 0.2 * cache),
        "resync.throughput": 1e8 * speed / (speed + 1e5),
        "resync.p99": 3e7 * (speed / 2e5) ** 0.3 * (0.8 if bfq else 1.0),
    }
    return {name: Estimate(v * math.exp(rng.gauss(0, 0.05)), 0.05) for name, v in true.items()}


def trial(
    setting: Setting,
    rng: random.Random,
    status: Status = Status.COMPLETE,
    figures: Mapping[str, Estimate] | None = None,
) -> Trial:
    return Trial(setting, status, measure(setting, rng) if figures is None else figures)


@pytest.fixture(params=sorted(ENTRY_POINTS))
def factory(request: pytest.FixtureRequest) -> StrategyFactory:
    try:
        loaded: StrategyFactory = ENTRY_POINTS[request.param].load()
    except ModuleNotFoundError as missing:
        if str(missing.name).startswith("autotune"):
            raise
        pytest.skip(f"{missing.name} is an extra that is not installed")
    return loaded


def check(setting: Setting, given: Problem) -> None:
    """A valid, allowed setting in plain Python values."""
    assert set(setting) == {dimension.knob for dimension in given.dimensions}
    for dimension in given.dimensions:
        value = setting[dimension.knob]
        assert type(value) in (int, str)
        assert value in dimension.choices
    assert given.allowed(setting)


def search(
    factory: StrategyFactory,
    given: Problem,
    result: Callable[[int, Setting, random.Random], Trial] | None = None,
) -> tuple[Strategy, list[Setting]]:
    """A whole run: the baseline, then what is asked for; returns what was proposed."""
    rng = random.Random(3)
    strategy = factory(given)
    strategy.tell(trial(given.baseline, rng))
    proposed = []
    for number in range(given.trials):
        setting = strategy.ask()
        if setting is None:
            break
        check(setting, given)
        proposed.append(setting)
        strategy.tell(result(number, setting, rng) if result else trial(setting, rng))
    return strategy, proposed


def test_proposals_and_the_recommendation_are_valid(factory: StrategyFactory) -> None:
    given = problem()
    strategy, proposed = search(factory, given)
    assert len(proposed) >= 3
    final = strategy.recommend()
    check(final.setting, given)
    assert final.gain.value > 0
    assert final.gain.spread >= 0
    assert 0 <= final.p_hold <= 1


def test_the_same_seed_gives_the_same_proposals(factory: StrategyFactory) -> None:
    first, second = (search(factory, problem())[1] for _ in range(2))
    assert first == second


def test_asking_again_before_telling_does_not_break_a_run(factory: StrategyFactory) -> None:
    given = problem()
    rng = random.Random(3)
    strategy = factory(given)
    strategy.tell(trial(BASELINE, rng))
    for _ in range(3):
        setting = strategy.ask()
        assert setting is not None
        check(setting, given)


@pytest.mark.parametrize("repeats", [1, 4])
def test_before_any_other_trial_the_baseline_is_recommended(
    factory: StrategyFactory, repeats: int
) -> None:
    rng = random.Random(3)
    strategy = factory(problem())
    for _ in range(repeats):
        strategy.tell(trial(BASELINE, rng))
    assert strategy.recommend().setting == BASELINE


def test_trials_nobody_asked_for_are_taken(factory: StrategyFactory) -> None:
    given = problem()
    rng = random.Random(3)
    strategy = factory(given)
    strategy.tell(trial(BASELINE, rng))
    other = {**BASELINE, "stripe_cache_size": 2048}
    for _ in range(3):
        strategy.tell(trial(other, rng))
        strategy.tell(trial(BASELINE, rng))
        setting = strategy.ask()
        assert setting is not None
        check(setting, given)
    check(strategy.recommend().setting, given)


def test_figures_may_be_missing(factory: StrategyFactory) -> None:
    def partial(number: int, setting: Setting, rng: random.Random) -> Trial:
        kept = list(measure(setting, rng).items())[number % 4 :]
        return trial(setting, rng, figures=dict(kept))

    given = problem()
    strategy, proposed = search(factory, given, partial)
    assert proposed
    check(strategy.recommend().setting, given)


def test_figures_carried_over_from_earlier_trials_are_taken(factory: StrategyFactory) -> None:
    rng = random.Random(3)
    read = measure(BASELINE, rng)["read.throughput"]

    def carried(number: int, setting: Setting, rng: random.Random) -> Trial:
        return trial(setting, rng, figures={**measure(setting, rng), "read.throughput": read})

    given = problem()
    strategy, _ = search(factory, given, carried)
    check(strategy.recommend().setting, given)


@pytest.mark.parametrize("status", [Status.ABORTED, Status.FAILED, Status.INFEASIBLE])
def test_a_run_where_nothing_completes_recommends_the_baseline(
    factory: StrategyFactory, status: Status
) -> None:
    def broken(number: int, setting: Setting, rng: random.Random) -> Trial:
        learnt = {"resync.p99": Estimate(9e7, 0.1)} if status == Status.ABORTED else {}
        return trial(setting, rng, status, learnt)

    given = problem()
    strategy, _ = search(factory, given, broken)
    assert strategy.recommend().setting == BASELINE


def test_what_the_kernel_did_not_take_is_not_proposed_again(factory: StrategyFactory) -> None:
    def refused(number: int, setting: Setting, rng: random.Random) -> Trial:
        return trial(setting, rng, Status.INFEASIBLE, {})

    _, proposed = search(factory, problem(), refused)
    keys = [setting_key(setting) for setting in proposed]
    assert len(keys) == len(set(keys))


def test_a_space_of_one_setting_has_nothing_to_try(factory: StrategyFactory) -> None:
    only = tuple(
        Dimension(d.knob, (BASELINE[d.knob],), d.ordered, d.moves)
        for d in (CACHE, SPEED, AHEAD, SCHEDULER)
    )
    strategy, proposed = search(factory, problem(dimensions=only))
    assert proposed == []
    assert strategy.recommend().setting == BASELINE


def test_a_space_where_only_the_baseline_is_allowed_has_nothing_to_try(
    factory: StrategyFactory,
) -> None:
    given = problem(allowed=lambda setting: dict(setting) == BASELINE)
    strategy, proposed = search(factory, given)
    assert proposed == []
    assert strategy.recommend().setting == BASELINE


def test_a_tight_filter_in_a_large_space_is_kept(factory: StrategyFactory) -> None:
    ladder = tuple(256 * 2**step for step in range(8))
    extra = tuple(
        Dimension(f"knob{number}", ladder, True, frozenset({"write.throughput"}))
        for number in range(6)
    )
    baseline = {**BASELINE, **{dimension.knob: 256 for dimension in extra}}

    def tight(setting: Setting) -> bool:
        return sum(int(setting[dimension.knob]) for dimension in extra) <= 6 * 256 + 512

    given = problem(dimensions=(CACHE, SPEED, AHEAD, SCHEDULER, *extra), baseline=baseline)
    given = problem(dimensions=given.dimensions, baseline=baseline, allowed=tight)
    strategy, proposed = search(factory, given)
    assert proposed
    check(strategy.recommend().setting, given)


def test_a_careful_search_and_hints_are_accepted(factory: StrategyFactory) -> None:
    hint = {**BASELINE, "stripe_cache_size": 8192}
    given = problem(careful=True, hints=(hint,), seconds={"read": 5.0, "resync": 30.0})
    strategy, _ = search(factory, given)
    check(strategy.recommend().setting, given)
