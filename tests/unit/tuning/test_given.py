"""A setting that is given: measured against what is there in turn, kept if it is no worse."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fake_run import Machine

from autotune.problem.ceilings import parse_ceiling
from autotune.store.database import Store
from autotune.tuning import resume
from autotune.tuning.preparation import GIVEN, Given
from autotune.tuning.tune import Result


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def held(machine: Machine, setting: dict[str, int | str], **changes: Any) -> Result:
    return machine.run(GIVEN, given=Given("theirs", setting), **changes)


ROLES = ["baseline", "baseline", "confirm-winner", "confirm-baseline", "confirm-baseline"]


def test_nothing_is_searched_and_what_is_better_is_kept(machine: Machine) -> None:
    result = held(machine, {"stripe_cache_size": 1024})
    assert result.keep
    assert result.reason == "better beyond noise"
    assert result.winner["stripe_cache_size"] == 1024
    trials = Store(machine.state).trials(1)
    assert [trial.role for trial in trials] == [*ROLES, "confirm-winner"]


def test_what_is_no_worse_is_kept(machine: Machine) -> None:
    result = held(machine, {"read_ahead_kb": 768})
    assert result.keep
    assert result.reason == "no worse than the original settings"


def test_what_is_worse_is_not_kept(machine: Machine) -> None:
    result = held(machine, {"stripe_cache_size": 64})
    assert not result.keep
    assert result.reason == "worse beyond noise"
    assert result.winner == result.baseline


def test_what_breaks_a_ceiling_is_not_kept_however_fast(machine: Machine) -> None:
    limit = (parse_ceiling("resync=15ms"),)
    result = held(machine, {"stripe_cache_size": 2048}, ceilings=limit)
    assert not result.keep
    assert "the profile broke the ceiling for resync.p99" in result.reason


def test_what_cannot_be_shown_is_not_kept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = machine.preparation("bayes")
    only_reads = tuple(phase for phase in whole.phases if phase.name == "read")
    prepared = machine.preparation

    def without_writes(*words: Any, **changes: Any) -> Any:
        preparation = prepared(*words, **changes)
        figures = tuple(f for f in preparation.figures if f.phase == "read")
        return dataclasses.replace(preparation, phases=only_reads, figures=figures)

    monkeypatch.setattr(machine, "preparation", without_writes)
    result = held(machine, {"stripe_cache_size": 2048})
    assert not result.keep
    assert "nothing can be shown" in result.reason


def test_a_run_of_a_given_setting_is_not_one_to_resume(machine: Machine) -> None:
    with pytest.raises(Exception, match="Stopped by a test"):
        held(machine, {"stripe_cache_size": 1024}, stop_at=7)
    store = Store(machine.state)
    store.finish_run(1, "interrupted", "Stopped by a test.")
    assert store.runs()[0].trials
    assert resume.interrupted(store.runs()) is None
    assert resume.unfinished(store.runs()) is None
