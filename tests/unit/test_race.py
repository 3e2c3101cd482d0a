"""A search from its first trial to what a run keeps, on arrays whose truth is known."""

from autotune.strategies.bayes import Bayes
from autotune.tuning.preparation import DOUBTS
from benchmarks.search.instance import WORTH
from benchmarks.search.race import Race, Rules, race
from benchmarks.search.synthetic import SyntheticArray
from benchmarks.search.table import claims, harm, holds, worst_kept

DEFAULT = 1.1


def run(seed: int) -> Race:
    return race(SyntheticArray(seed, ratio=DEFAULT), Bayes, Rules(12, careful=True))


def test_under_the_ceilings_of_a_default_run_a_gain_is_found_and_proven() -> None:
    found = run(6)
    assert found.instance.optimum >= WORTH
    assert not found.kept_baseline
    assert found.share(found.kept) > 0.3
    # So large a gain is clear after the first pair, beside trials of what was doubtful in it.
    assert found.share(found.kept) > 0.9
    assert found.candidates == 1
    assert 2 <= len(found.proofs) <= 2 + DOUBTS
    over_s = sum(tried.over_s for tried in (*found.tried, *found.proofs))
    assert harm([found]).startswith(f"{over_s:.0f} s, ")
    assert worst_kept([found]) > 1.0


def test_where_nothing_is_to_be_gained_nothing_is_claimed() -> None:
    found = run(5)
    assert found.instance.optimum < WORTH
    assert found.kept_baseline
    assert claims([found]) == "0 of 1"
    assert holds([found]) == 1.0
