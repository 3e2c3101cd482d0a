"""What later checks of a run begin with."""

from collections.abc import Callable

import pytest

from autotune.errors import InfeasibleError, StoppedError
from autotune.measure.phase import PhaseResult
from autotune.measure.workload import Phase, Probe
from autotune.problem.course import Course
from autotune.problem.setting import Setting
from autotune.tuning.grown_cache import GrownCache

CHECK = Phase(name="resync", check=True, probe=Probe(rate_iops=50))
IDLE = Phase(name="idle", probe=Probe(rate_iops=50))
SMALL = {"stripe_cache_size": 256, "read_ahead_kb": 384}


class Kernel:
    """Takes note of the caches that it was set to; `most` is what it has memory for."""

    def __init__(self, most: int = 4096) -> None:
        self.most, self.sizes = most, list[int]()

    def apply(self, setting: Setting) -> None:
        size = int(setting["stripe_cache_size"])
        self.sizes.append(size)
        if size > self.most:
            raise InfeasibleError("There is no memory for it.")


def seen(phase: Phase, *stripes: int) -> PhaseResult:
    return PhaseResult(phase.name, {}, 30, True, course=Course((), (), (), stripes))


def anything(_setting: Setting) -> bool:
    return True


def grown(
    apply: Callable[[Setting], object], allowed: Callable[[Setting], bool] = anything
) -> GrownCache:
    cache = GrownCache(apply, allowed)
    cache.learn(IDLE, SMALL, seen(IDLE, 5000))
    # What was set does not grow, or hardly.
    cache.learn(CHECK, {**SMALL, "stripe_cache_size": 8192}, seen(CHECK, 8192, 8200))
    cache.learn(CHECK, {**SMALL, "stripe_cache_size": 8192}, seen(CHECK, 8900, 8900))
    cache.learn(CHECK, {"read_ahead_kb": 384}, seen(CHECK, 7000))
    cache.learn(CHECK, SMALL, seen(CHECK, 700, 800))
    return cache


def test_a_later_check_begins_as_large_as_the_first_one_had_become() -> None:
    kernel = Kernel()
    with grown(kernel.apply).before(CHECK, SMALL) as is_grown:
        assert kernel.sizes == [800]
        assert is_grown
    assert kernel.sizes == [800, 256]


def test_it_is_what_the_first_check_showed_that_counts() -> None:
    kernel = Kernel()
    cache = grown(kernel.apply)
    cache.learn(CHECK, SMALL, seen(CHECK, 2000))
    with cache.before(CHECK, SMALL):
        pass
    assert kernel.sizes == [800, 256]


@pytest.mark.parametrize(
    ("phase", "setting", "large"),
    [
        (IDLE, SMALL, False),
        # It will hardly grow, so nobody has to wait for that.
        (CHECK, {**SMALL, "stripe_cache_size": 1024}, True),
        (CHECK, {"read_ahead_kb": 384}, False),
    ],
)
def test_nothing_else_is_touched(phase: Phase, setting: Setting, large: bool) -> None:
    kernel = Kernel()
    with grown(kernel.apply).before(phase, setting) as is_grown:
        assert is_grown == large
    assert kernel.sizes == []


def test_nor_is_the_first_check() -> None:
    kernel = Kernel()
    with GrownCache(kernel.apply, anything).before(CHECK, SMALL) as is_grown:
        assert not is_grown
    assert kernel.sizes == []


def test_without_memory_a_check_begins_as_it_is() -> None:
    kernel = Kernel(most=500)
    with grown(kernel.apply).before(CHECK, SMALL) as is_grown:
        assert kernel.sizes == [800, 256]
        assert not is_grown


@pytest.mark.parametrize(("room", "begins"), [(799, [799, 256]), (257, [257, 256]), (256, [])])
def test_it_goes_no_further_than_the_ram_budget(room: int, begins: list[int]) -> None:
    """The rest it grows by itself, which is waited for."""
    kernel = Kernel()
    budget = grown(kernel.apply, lambda setting: int(setting["stripe_cache_size"]) <= room)
    with budget.before(CHECK, SMALL) as is_grown:
        assert not is_grown
    assert kernel.sizes == begins


def test_whoever_ends_a_run_puts_it_back() -> None:
    kernel = Kernel()
    with pytest.raises(StoppedError), grown(kernel.apply).before(CHECK, SMALL):
        raise StoppedError("Stopped by a test.")
    assert kernel.sizes == [800]
