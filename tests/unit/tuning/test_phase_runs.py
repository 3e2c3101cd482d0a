"""What is known of each phase by now."""

from pathlib import Path

import pytest
from fake_run import Machine

from autotune.measure.phase import PhaseResult, never_clear, never_hopeless
from autotune.measure.workload import Phase
from autotune.measure.write_budget import Written
from autotune.tuning import phase_runs
from autotune.tuning.phase_runs import PhaseRuns
from autotune.tuning.time_spent import Spent


def test_how_long_the_warm_up_takes_says_nothing_of_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its check lets the stripe cache grow, for half a minute."""
    machine = Machine(tmp_path, monkeypatch)

    def slow(phase: Phase, *_: object) -> PhaseResult:
        return PhaseResult(phase.name, {}, 34.0, True)

    monkeypatch.setattr(phase_runs, "measure", slow)
    preparation = machine.preparation("recipe")
    runs = PhaseRuns(preparation, machine.bench(Written()), Spent())
    expected = {phase.name: phase.expected_seconds for phase in preparation.phases}
    runs.warm_up(lambda *_: None)
    assert runs.seconds == expected
    runs.run(preparation.phases[0], 1, preparation.baseline, never_hopeless, never_clear)
    assert runs.seconds[preparation.phases[0].name] == 34.0


def test_what_was_clear_soon_says_nothing_of_how_long_a_proof_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, monkeypatch)

    def soon_clear(phase: Phase, *_: object) -> PhaseResult:
        return PhaseResult(phase.name, {}, 3.0, False, measured_s=3.0)

    monkeypatch.setattr(phase_runs, "measure", soon_clear)
    preparation = machine.preparation("recipe")
    phase = preparation.phases[0]
    runs = PhaseRuns(preparation, machine.bench(Written()), Spent())
    runs.run(phase, 1, preparation.baseline, never_hopeless, never_clear)
    assert runs.seconds[phase.name] == phase.expected_seconds
