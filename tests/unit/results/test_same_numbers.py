"""Every report of a run gives the same numbers, also of an array that drifts."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from fake_run import Machine
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Estimate
from autotune.store.database import Store
from autotune.tuning.document import result_document


class Drifting(Machine):
    """It gets slower with each trial."""

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        factor = 0.97 ** (seed // 1000)
        figures = {n: Estimate(e.value * factor, e.spread) for n, e in result.figures.items()}
        return dataclasses.replace(result, figures=figures)


class Alike(Drifting):
    """Nothing that is set changes anything."""

    def apply(self, *args: Any) -> Any:
        wanted = super().apply(*args)
        self.setting = {**self.setting, "stripe_cache_size": 256}
        return wanted


def _asked(machine: Machine, *words: str) -> Any:
    done = CliRunner().invoke(app, [*words, "--json", "--state-dir", str(machine.state)])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_run_solve_history_and_profile_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Drifting(tmp_path, monkeypatch)
    result = machine.run("recipe")
    assert result.keep
    profile = Store(machine.state).run(1).profile
    assert profile is not None
    ran, solved = result_document(result, profile, None), _asked(machine, "solve", "1")
    named = _asked(machine, "history", "1")["named"]["balanced"]
    evidence = profile["evidence"]
    gains = [solved["gain"]["value"], named["gain"]["value"], evidence["gain"]]
    assert gains == pytest.approx([ran["gain"]["ratio"]] * 3)
    for name, figure in ran["figures"].items():
        assert solved["figures"][name]["before"] == pytest.approx(figure["before"]), name
        assert solved["figures"][name]["ceiling"] == pytest.approx(figure["ceiling"]), name
        if not figure["change"]:
            continue
        assert solved["figures"][name]["expected"] == pytest.approx(figure["after"]), name
        proven = evidence["figures"][name]
        assert proven["before"] == pytest.approx(figure["before"])
        assert proven["after"] == pytest.approx(figure["after"])
        assert figure["after"] / figure["before"] == pytest.approx(figure["change"]["ratio"])
    # Another answer is compared with the same original settings.
    other = _asked(machine, "solve", "1", "--name", "throughput")
    for name, figure in other["figures"].items():
        assert figure["before"] == pytest.approx(ran["figures"][name]["before"]), name


def test_a_run_that_keeps_nothing_says_the_same_original_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Alike(tmp_path, monkeypatch)
    result = machine.run("recipe", ceilings=(Ceiling(None, 1e9, None),))
    assert not result.keep
    ran, solved = result_document(result, None, None), _asked(machine, "solve", "1")
    assert ran["figures"].keys() >= solved["figures"].keys() != set()
    for name, figure in solved["figures"].items():
        assert figure["before"] == pytest.approx(ran["figures"][name]["before"]), name
