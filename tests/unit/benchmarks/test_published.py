"""Published tables held against what a lab showed."""

import pytest

from autotune.lab.scenario import load
from benchmarks.panel.judge import Ratio
from benchmarks.published.tables import ARRAY, Published, steps, tables, verdict


def test_every_table_has_an_array_and_what_it_needs() -> None:
    for table in tables().values():
        if table.setting != ARRAY:
            assert load(str(table.scenario_path)).filesystem is not None
        assert len(table.values) > 1
        rows = {str(value) for value in table.values}
        for published in table.figures.values():
            assert set(published) <= rows


def test_a_step_goes_from_one_published_row_to_the_next() -> None:
    published = {"write.throughput": {"256": 50, "4096": 100, "8192": 100}}
    table = Published("t", "", "stripe_cache_size", (256, 1024, 4096, 8192), published)
    shown = {"256": 10.0, "1024": 15.0, "4096": 20.0, "8192": 20.0}
    rounds = {
        value: [{"write.throughput": rate * noise} for noise in (1.0, 1.01, 0.99)]
        for value, rate in shown.items()
    }
    first, second = steps(table, rounds)
    assert (first.before, first.after, first.published) == ("256", "4096", 2.0)
    assert first.here.ratio == pytest.approx(2.0, rel=0.01)
    assert (first.verdict, second.verdict) == ("confirmed", "confirmed")


@pytest.mark.parametrize(
    ("said", "shown", "word"),
    [
        (2.0, (1.1, 1.3), "confirmed"),
        (2.0, (0.9, 1.3), "not shown"),
        (2.0, (0.7, 0.9), "contradicted"),
        ("less", (0.7, 0.9), "confirmed"),
        (2.0, (0.99, 1.01), "no step"),
        ("more", (0.7, 0.9), "contradicted"),
        (1.01, (0.95, 1.04), "confirmed"),
        (1.01, (0.8, 1.3), "not shown"),
        (1.01, (1.2, 1.4), "contradicted"),
    ],
)
def test_only_a_clear_difference_confirms_or_contradicts(
    said: float | str, shown: tuple[float, float], word: str
) -> None:
    low, high = shown
    assert verdict(said, Ratio((low * high) ** 0.5, low, high)) == word
