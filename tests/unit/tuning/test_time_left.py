"""The time left that people are told follows from what trials take."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import synthetic_run
from fake_run import Machine

from autotune.store import TrialRecord
from autotune.tuning import run_progress
from autotune.tuning.time_left import Plan, expected_left_s

PLAN = Plan(trials=10, whole_s=20.0, moved_s=15.0, long_s=120.0)


def a_run(*roles: str, gap_s: float = 1.0, seconds: float = 15.0) -> list[TrialRecord]:
    """Trials of so many seconds, so far apart."""
    found = []
    for number, role in enumerate(roles):
        trial = synthetic_run.trial(number, role, {}, {})
        started = synthetic_run.START + timedelta(seconds=(seconds + gap_s) * number)
        found.append(TrialRecord(**{**vars(trial), "started": started, "seconds": seconds}))
    return found


def test_at_the_start_everything_is_still_to_come() -> None:
    assert expected_left_s(PLAN, [], 1e6) == 2 * 20 + 10 * 15 + 4 * 15 + 120


def test_a_search_goes_on_as_it_went() -> None:
    done = a_run("baseline", "baseline", *["search"] * 4)
    assert expected_left_s(PLAN, done, 1e6) == pytest.approx(6 * 16 + 4 * 16 + 120)


def test_the_time_allowed_ends_a_search_before_its_trials_do() -> None:
    done = a_run("baseline", "baseline", "search")
    assert expected_left_s(PLAN, done, 100.0) == pytest.approx(100 - 15)


def test_a_proof_takes_two_pairs_and_perhaps_one_more() -> None:
    done = a_run("baseline", "search", "confirm-winner")
    assert expected_left_s(PLAN, done, 1e6) == pytest.approx(3 * 16 + 120)
    turns = ["confirm-winner", "confirm-baseline", "confirm-baseline", "confirm-winner"]
    assert expected_left_s(PLAN, a_run("search", *turns), 1e6) == pytest.approx(120)
    fifth = a_run("search", *turns, "confirm-winner")
    assert expected_left_s(PLAN, fifth, 1e6) == pytest.approx(16 + 120)
    last = a_run("search", *turns, "long-winner", "long-baseline")
    assert expected_left_s(PLAN, last, 1e6) == 0


def test_a_proof_has_as_many_pairs_as_fit() -> None:
    proving = replace(PLAN, long_s=0.0, proving=True)
    done = a_run("baseline", "search")
    assert expected_left_s(proving, done, 40.0) == pytest.approx(2 * 16)
    assert expected_left_s(proving, done, 80.0) == pytest.approx(4 * 16)
    begun = a_run("search", "confirm-winner")
    assert expected_left_s(proving, begun, 25.0) == pytest.approx(16)


def test_a_run_reckons_anew_before_each_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def reckon(plan: Plan, records: list[TrialRecord], allowed_s: float) -> float:
        seen.append((len(records), plan))
        return expected_left_s(plan, records, allowed_s)

    monkeypatch.setattr(run_progress, "expected_left_s", reckon)
    Machine(tmp_path, monkeypatch).run("recipe")
    assert [count for count, _ in seen] == list(range(len(seen)))
    plan = seen[-1][1]
    assert (plan.trials, plan.long_s) == (9, 120.0)
    assert seen[0][1].moved_s == 15.0
    # Read-ahead is not what was kept.
    proofs = {plan.moved_s for _, plan in seen if plan.proving}
    assert proofs == {10.0}
