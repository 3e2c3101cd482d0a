"""The time left that people are told follows from what trials take."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
import synthetic_run
from fake_run import Machine

from autotune.problem.figure import Estimate
from autotune.store import TrialRecord
from autotune.tuning import run_progress
from autotune.tuning.time_left import Plan, expected_left_s, pairs_kept

PLAN = Plan(trials=10, whole_s=20.0, moved_s=15.0, proof_s=15.0, long_s=120.0)


def a_run(*roles: str, gap_s: float = 1.0, seconds: float = 15.0) -> list[TrialRecord]:
    """Trials of so many seconds, so far apart."""
    found = []
    for number, role in enumerate(roles):
        trial = synthetic_run.trial(number, role, {}, {})
        started = synthetic_run.START + timedelta(seconds=(seconds + gap_s) * number)
        found.append(TrialRecord(**{**vars(trial), "started": started, "seconds": seconds}))
    return found


def test_at_the_start_everything_is_still_to_come() -> None:
    assert expected_left_s(PLAN, [], 1e6) == 3 * 20 + 11 * 15 + 4 * 15 + 120


def test_the_original_settings_come_back_in_the_search() -> None:
    for searched, again in ((0, 1), (5, 1), (6, 1)):
        done = a_run("baseline", "baseline", *["search"] * searched, gap_s=0)
        expected = again * 20 + (11 - searched) * 15 + 4 * 15 + 120
        assert expected_left_s(PLAN, done, 1e6) == pytest.approx(expected), searched
    back = a_run("baseline", "baseline", *["search"] * 6, "baseline", gap_s=0)
    assert expected_left_s(PLAN, back, 1e6) == pytest.approx(5 * 15 + 4 * 15 + 120)


def test_they_come_back_more_often_while_they_move() -> None:
    done = a_run("baseline", "baseline", "search", "search", gap_s=0)
    still, moving = (expected_left_s(replace(PLAN, baseline_every=n), done, 1e6) for n in (6, 2))
    assert moving - still == pytest.approx((5 - 1) * 20)


@pytest.mark.parametrize(
    ("best", "kept"),
    [
        (None, 2),
        (Estimate(1.05, 0.1), 2),
        (Estimate(1.1, 0.045), 4),
        (Estimate(1.5, 0.05), 2),
    ],
)
def test_what_is_near_the_noise_keeps_time_for_more_pairs(best: Estimate | None, kept: int) -> None:
    assert pairs_kept(best) == kept


def test_a_search_goes_on_as_it_went() -> None:
    done = a_run("baseline", "baseline", *["search"] * 4)
    assert expected_left_s(PLAN, done, 1e6) == pytest.approx(7 * 16 + 20 + 4 * 16 + 120)


def test_whether_each_change_is_needed_takes_some_trials() -> None:
    found = a_run("baseline", "baseline", *["search"] * 7, seconds=16, gap_s=0)
    # The original settings come back at the end of the search.
    back = replace(PLAN, role="baseline")
    assert expected_left_s(back, found, 1e6) == pytest.approx(20 + 3 * 16 + 15 + 4 * 15 + 120)
    asking = replace(PLAN, role="check")
    for asked, left in enumerate((2.5, 2, 1.5, 1)):
        roles = ["baseline", "baseline", *["search"] * 7, *["check"] * asked]
        done = a_run(*roles, seconds=16, gap_s=0)
        expected = left * 15 + 4 * 15 + 120
        assert expected_left_s(asking, done, 1e6) == pytest.approx(expected), asked
    # What is given is proven as it is.
    given = replace(PLAN, trials=0)
    assert expected_left_s(given, found[:2], 1e6) == pytest.approx(4 * 15 + 120)


def test_the_time_allowed_ends_a_search_before_its_trials_do() -> None:
    done = a_run("baseline", "baseline", "search")
    # About a trial before its time is over.
    assert expected_left_s(PLAN, done, 300.0) == pytest.approx(300 - 15)
    # Room is kept for more than two pairs of all: half of the rest goes to other proofs. Half a
    # trial before that the search has ended.
    unused = 1.1 * 15 / 2 + (260 - 4 * PLAN.moved_s) / 2
    faint = replace(PLAN, kept_s=260)
    assert expected_left_s(faint, done, 300.0) == pytest.approx(300 - unused)


def test_a_proof_takes_two_pairs_and_perhaps_one_more() -> None:
    proving = replace(PLAN, role="confirm-baseline")
    done = a_run("baseline", "search", "confirm-winner")
    assert expected_left_s(proving, done, 1e6) == pytest.approx(3 * 16 + 120)
    turns = ["confirm-winner", "confirm-baseline", "confirm-baseline", "confirm-winner"]
    fifth = a_run("search", *turns)
    assert expected_left_s(proving, fifth, 1e6) == pytest.approx(2 * 16 + 120)
    sixth = a_run("search", *turns, "confirm-winner")
    assert expected_left_s(proving, sixth, 1e6) == pytest.approx(16 + 120)
    # Of another setting, after one that was not kept.
    anew = a_run("search", *turns, "search")
    assert expected_left_s(proving, anew, 1e6) == pytest.approx(4 * 16 + 120)


def test_of_what_promised_more_another_proof_follows_if_it_fits() -> None:
    turns = ["confirm-winner", "confirm-baseline"]
    proving = replace(PLAN, long_s=0.0, role="confirm-winner", another_s=70.0)
    done = a_run("search", *turns)
    assert expected_left_s(proving, done, 1e6) == pytest.approx(2 * 16 + 70)
    assert expected_left_s(proving, done, 100.0) == pytest.approx(2 * 16)
    # When that begins, nothing of it is done.
    second = replace(proving, another_s=0.0, proof_after=len(done))
    assert expected_left_s(second, done, 1e6) == pytest.approx(4 * 16)
    loading = replace(PLAN, role="long-winner", another_s=70.0)
    assert expected_left_s(loading, done, 1e6) == 120 + 70


def test_a_proof_measures_what_the_best_setting_moves() -> None:
    found = a_run("baseline", "baseline", *["search"] * 4, gap_s=0)
    narrow = replace(PLAN, proof_s=5.0, long_s=0.0)
    assert expected_left_s(narrow, found, 1e6) == pytest.approx(6 * 15 + 20 + 5 + 4 * 5)
    proving = replace(narrow, role="confirm-winner")
    assert expected_left_s(proving, found, 1e6) == pytest.approx(4 * 5)


def test_a_long_load_takes_both_sides() -> None:
    turns = ["search", "confirm-winner", "confirm-baseline"]
    loading = replace(PLAN, role="long-winner")
    for loads, left in ((0, 120), (1, 60), (2, 120), (3, 60)):
        done = a_run(*turns, *["long-winner"] * loads)
        assert expected_left_s(loading, done, 1e6) == left


def test_a_search_that_goes_on_after_a_proof_is_one() -> None:
    turns = ["confirm-winner", "confirm-baseline"]
    done = a_run("baseline", "baseline", *["search"] * 4, *turns)
    before = a_run("baseline", "baseline", *["search"] * 4)
    expected = expected_left_s(PLAN, before, 1e6)
    assert expected_left_s(PLAN, done, 1e6) == pytest.approx(expected)


def test_a_proof_has_as_many_pairs_as_fit() -> None:
    proving = replace(PLAN, long_s=0.0, role="confirm-winner")
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
    first = seen[0][1]
    # Three phases, of which nothing is known yet.
    assert (first.trials, first.long_s, first.moved_s) == (9, 120.0, 45.0)
    # Once something looks better, that is what is expected to be proven.
    assert [plan.proof_s for _, plan in seen if plan.role == "search"][-1] == 10.0
    # Read-ahead is not what was kept.
    proofs = {plan.proof_s for _, plan in seen if plan.role.startswith("confirm-")}
    assert proofs == {10.0}
    assert {plan.long_s for _, plan in seen if plan.role.startswith("confirm-")} == {120.0}
