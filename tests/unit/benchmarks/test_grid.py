"""Recorded grids: replayed as they were measured."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autotune.strategies.random import Random
from benchmarks.search.grid import RecordedGrid
from benchmarks.search.race import Rules, race


def measured(throughput: float, p99: float | None = None) -> list[dict[str, list[float]]]:
    """Two measurements, 10 % to each side."""
    both = []
    for factor in (1 / 1.1, 1.1):
        shown = {"throughput": [throughput * factor, 0.05]}
        if p99 is not None:
            shown["p99"] = [p99 / factor, 0.1]
        both.append(shown)
    return both


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A cache that doubles writes, and a sync speed that brings as much, at a price."""
    cells: list[dict[str, Any]] = []
    for cache in (256, 4096):
        cells.append({"phase": "write", "values": [cache], "measured": measured(50 * cache**0.25)})
        for speed in (1000, 4000, 16000):
            shown = measured(speed, speed)
            cells.append({"phase": "resync", "values": [cache, speed], "measured": shown})
    for cell in cells:
        cell["measured"] = [
            {f"{cell['phase']}.{name}": shown for name, shown in one.items()}
            for one in cell["measured"]
        ]
    knobs = {"stripe_cache_size": [256, 4096], "sync_speed_max": [1000, 4000, 16000]}
    document = {
        "baseline": {"stripe_cache_size": 256, "sync_speed_max": 1000},
        "ram_budget_bytes": 5000,
        "knobs": {
            name: {"choices": values, "ordered": True, "ram_bytes": [0] * len(values)}
            for name, values in knobs.items()
        },
        "phases": {
            "write": {"weight": 1, "moved_by": ["stripe_cache_size"], "seconds": 8},
            "resync": {"weight": 1, "moved_by": list(knobs), "seconds": 10},
        },
        "cells": cells,
    }
    file = tmp_path / "made-up.json"
    file.write_text(json.dumps(document))
    return file


def test_the_truth_is_the_mean_and_a_trial_is_as_far_from_it_as_the_noise(path: Path) -> None:
    grid = RecordedGrid(path, 0)
    setting = {"stripe_cache_size": 4096, "sync_speed_max": 4000}
    assert grid.truth(setting) == pytest.approx(
        {"write.throughput": 400, "resync.throughput": 4000, "resync.p99": 4000}
    )
    seen = {grid.measure(setting, 1, random.Random(n))["resync.p99"].value for n in range(20)}
    assert sorted(seen) == pytest.approx([4000 / 1.1**2**0.5, 4000 * 1.1**2**0.5])


@pytest.mark.parametrize(("seed", "optimum"), [(0, 2**1.5), (1, 2**2.5), (2, 2**2.5)])
def test_the_optimum_is_the_best_that_holds(path: Path, seed: int, optimum: float) -> None:
    """Two thirds of the settings hold the ceiling, or all of them."""
    assert RecordedGrid(path, seed).optimum == pytest.approx(optimum)


def test_luck_in_one_pass_is_no_optimum(path: Path) -> None:
    document = json.loads(path.read_text())
    for cell in document["cells"]:
        for one in cell["measured"]:
            for shown in one.values():
                shown[0] = 100.0
    document["cells"][-1]["measured"][0]["resync.throughput"][0] = 300.0
    path.write_text(json.dumps(document))
    grid = RecordedGrid(path, 2)
    assert np.exp(grid.landscape()[0].max()) > 1.3
    assert grid.optimum == pytest.approx(1.0)


def test_a_strategy_can_be_raced_on_it(path: Path) -> None:
    grid = RecordedGrid(path, 1)
    run = race(grid, Random, Rules(6))
    assert all(grid.allowed(setting) for setting in [grid.problem(5, False).baseline])
    assert run.share(run.final) <= 1.0


def test_what_takes_too_much_memory_is_not_in_the_space(path: Path) -> None:
    document = json.loads(path.read_text())
    document["knobs"]["stripe_cache_size"]["ram_bytes"] = [1, 6000]
    path.write_text(json.dumps(document))
    grid = RecordedGrid(path, 2)
    assert not grid.allowed({"stripe_cache_size": 4096, "sync_speed_max": 1000})
    assert len(grid.landscape()[0]) == 3


def test_what_could_not_be_measured_in_full_is_no_part_of_the_space(path: Path) -> None:
    document = json.loads(path.read_text())
    setting = {"stripe_cache_size": 4096, "sync_speed_max": 4000}
    for cell in document["cells"]:
        if cell["values"] == [4096, 4000]:
            del cell["measured"][1]["resync.throughput"]
    path.write_text(json.dumps(document))
    grid = RecordedGrid(path, 1)
    assert not grid.allowed(setting)
    assert len(grid.landscape()[0]) == 5
