"""The time left that people are told follows from what trials take."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from statistics import median

import pytest
import synthetic_run
from fake_run import Machine
from simulated_time import TimedMachine

from autotune.store import TrialRecord
from autotune.tuning import run_progress
from autotune.tuning.time_left import ANOTHER, SPREAD, RunPlan, TimeLeft, time_left

PLAN = RunPlan(trials=10, whole_s=20.0, moved_s=17.0, proof_s=13.0, long_s=120.0, others=True)
FURTHER_S = ANOTHER * 17.0
"""A proof that may follow, with no gap between trials."""
PROOF_S, PAIR_S = 4 * 13.0, 2 * 13.0


def a_run(*roles: str, gap_s: float = 0.0, seconds: float = 15.0) -> list[TrialRecord]:
    """Trials of so many seconds, so far apart."""
    found = []
    for number, role in enumerate(roles):
        trial = synthetic_run.trial(number, role, {}, {})
        started = synthetic_run.START + timedelta(seconds=(seconds + gap_s) * number)
        found.append(TrialRecord(**{**vars(trial), "started": started, "seconds": seconds}))
    return found


def searching(seconds: float) -> TimeLeft:
    """What is left of a search of so many seconds, and of the proofs after it."""
    most_s = seconds * SPREAD + PROOF_S + PLAN.long_s + FURTHER_S
    least_s = max(0.0, seconds - PLAN.moved_s) / SPREAD + PAIR_S
    return TimeLeft(pytest.approx(least_s), pytest.approx(most_s))


def test_at_the_start_everything_is_still_to_come() -> None:
    assert time_left(PLAN, [], 1e6) == searching(3 * 20 + 10 * 17 + 13)


def test_the_original_settings_come_back_in_the_search() -> None:
    for searched in (1, 5, 6):
        done = a_run("baseline", "baseline", *["search"] * searched)
        expected = searching(20 + (10 - searched) * 15 + 13)
        assert time_left(PLAN, done, 1e6) == expected, searched
    back = a_run("baseline", "baseline", *["search"] * 6, "baseline")
    assert time_left(PLAN, back, 1e6) == searching(4 * 15 + 13)


def test_they_come_back_more_often_while_they_move() -> None:
    done = a_run("baseline", "baseline", "search", "search")
    moving = time_left(replace(PLAN, baseline_every=2), done, 1e6)
    assert moving == searching(5 * 20 + 8 * 15 + 13)


def test_a_search_goes_on_as_it_went() -> None:
    done = a_run("baseline", "baseline", *["search"] * 4, gap_s=1.0)
    found = time_left(PLAN, done, 1e6)
    search_s = 6 * 16 + 20 + 14
    assert found.least_s == pytest.approx((search_s - 17) / SPREAD + 2 * 14)
    assert found.most_s == pytest.approx(search_s * SPREAD + 4 * 14 + 120 + ANOTHER * 18)


def test_whether_each_change_is_needed_takes_some_trials() -> None:
    found = a_run("baseline", "baseline", *["search"] * 7, seconds=16)
    # The original settings come back at the end of the search.
    back = replace(PLAN, role="baseline")
    assert time_left(back, found, 1e6) == searching(20 + 3 * 16 + 13)
    asking = replace(PLAN, role="check")
    for asked, left in enumerate((2.5, 2, 1.5, 1)):
        done = a_run(*["search"] * 7, *["check"] * asked, seconds=16)
        assert time_left(asking, done, 1e6) == searching(left * 13), asked


def test_how_long_a_given_setting_takes_is_known() -> None:
    given = replace(PLAN, trials=0, others=False, long_s=0.0)
    measuring = time_left(replace(given, role="baseline"), a_run("baseline"), 1e6)
    assert measuring.least_s == pytest.approx(20 / SPREAD + PROOF_S)
    assert measuring.most_s == pytest.approx(20 * SPREAD + PROOF_S)
    done = a_run("baseline", "baseline", "confirm-winner")
    left = time_left(replace(given, role="confirm-baseline"), done, 1e6)
    assert left == TimeLeft(3 * PROOF_S / 4, 3 * PROOF_S / 4)


def test_the_pause_before_a_run_goes_on_is_no_time_between_trials() -> None:
    before, after = a_run("baseline", "baseline", "search"), a_run("search", "search")
    later = [replace(r, started=r.started + timedelta(days=1)) for r in after]
    assert time_left(PLAN, [*before, *later], 1e6) == searching(20 + 7 * 15 + 13)


def test_while_nothing_looks_better_a_run_may_end_with_its_search() -> None:
    done = a_run("baseline", "baseline", *["search"] * 4)
    nothing = time_left(replace(PLAN, proof_s=0.0, long_s=0.0), done, 1e6)
    search_s = 6 * 15 + 20 + PLAN.moved_s
    assert nothing.least_s == pytest.approx((search_s - PLAN.moved_s) / SPREAD)
    assert nothing.most_s == pytest.approx(search_s * SPREAD + FURTHER_S)


def test_the_time_allowed_ends_a_search_before_its_trials_do() -> None:
    done = a_run("baseline", "baseline", "search")
    # A proof and its long load are kept free, and half a trial is too short for one.
    search_s = 300 - PROOF_S - 120 - 1.1 * 15 / 2
    found = time_left(PLAN, done, 300.0)
    assert found == TimeLeft(pytest.approx((search_s - 17) / SPREAD + PAIR_S), 300.0)
    faint = time_left(replace(PLAN, kept_s=260), done, 300.0)
    assert faint.least_s == pytest.approx((300 - 260 - 1.1 * 15 / 2 - 17) / SPREAD + PAIR_S)


def test_a_proof_takes_two_pairs_or_more_and_others_may_follow() -> None:
    proving = replace(PLAN, role="confirm-baseline")
    more_s = PAIR_S + 120 + FURTHER_S
    for proven, left in ((0, 4), (1, 3), (2, 2), (3, 1), (4, 2), (5, 1)):
        done = a_run("baseline", "search", *["confirm-winner"] * proven)
        least_s = left * 13.0
        assert time_left(proving, done, 1e6) == TimeLeft(least_s, least_s + more_s), proven
    # Of another setting, when nothing of it is done.
    turns = ["confirm-winner", "confirm-baseline"]
    second = replace(proving, others=True, proof_after=3)
    done = a_run("search", *turns)
    assert time_left(second, done, 1e6) == TimeLeft(PROOF_S, PROOF_S + more_s)
    last = replace(second, others=False)
    assert time_left(last, done, 1e6).most_s == PROOF_S + PAIR_S + 120


def test_nothing_new_is_said_to_begin_after_the_time_allowed() -> None:
    proving = replace(PLAN, role="confirm-winner")
    done = a_run("baseline", "search")
    assert time_left(proving, done, 90.0) == TimeLeft(PROOF_S, 90.0)
    # Only one pair fits.
    assert time_left(proving, done, 40.0) == TimeLeft(PAIR_S, 40.0)
    # What is begun is ended.
    assert time_left(proving, done, -5.0) == TimeLeft(PAIR_S, PAIR_S)
    assert time_left(PLAN, done, -5.0) == TimeLeft(0.0, 0.0)


def test_a_proof_measures_what_the_best_setting_moves() -> None:
    found = a_run("baseline", "baseline", *["search"] * 4)
    narrow = replace(PLAN, proof_s=5.0, long_s=0.0)
    search_s = 6 * 15 + 20 + 5
    assert time_left(narrow, found, 1e6).least_s == pytest.approx((search_s - 17) / SPREAD + 2 * 5)
    assert time_left(replace(narrow, role="confirm-winner"), found, 1e6).least_s == 4 * 5


def test_a_long_load_takes_both_sides() -> None:
    turns = ["search", "confirm-winner", "confirm-baseline"]
    loading = replace(PLAN, role="long-winner", proof_after=1)
    # Both once more, if the winner looks slower.
    for loads, left, again in ((0, 120, 120), (1, 60, 120), (2, 120, 0), (3, 60, 0)):
        done = a_run(*turns, *["long-winner"] * loads)
        expected = TimeLeft(left, left + again + FURTHER_S)
        assert time_left(loading, done, 1e6) == expected, loads
        assert time_left(loading, done, 1.0) == TimeLeft(left, left), loads
    # What an earlier proof loaded is of that.
    again = replace(loading, others=False, proof_after=6)
    done = a_run(*turns, "long-winner", "long-baseline", "search", *turns[1:])
    assert time_left(again, done, 1e6) == TimeLeft(120, 240)


def test_a_run_reckons_anew_before_each_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def reckon(plan: RunPlan, records: list[TrialRecord], allowed_s: float) -> TimeLeft:
        seen.append((len(records), plan))
        return time_left(plan, records, allowed_s)

    monkeypatch.setattr(run_progress, "time_left", reckon)
    Machine(tmp_path, monkeypatch).run("recipe")
    # Before the warm-up, too.
    assert [count for count, _ in seen] == [0, *range(len(seen) - 1)]
    first = seen[0][1]
    # Three phases, of which nothing is known yet.
    assert (first.trials, first.long_s, first.moved_s) == (9, 120.0, 33.0)
    # Once something looks better, that is what is expected to be proven.
    searches = [plan for _, plan in seen if plan.role == "search"]
    assert (searches[0].proof_s, searches[-1].proof_s) == (0.0, 10.0)
    # Read-ahead is not what was kept.
    proofs = [plan for _, plan in seen if plan.role.startswith("confirm-")]
    assert {(plan.proof_s, plan.long_s, plan.others) for plan in proofs} == {(10.0, 120.0, True)}


@pytest.mark.parametrize("time_s", [600.0, 1800.0])
def test_what_is_told_is_true_in_most_minutes(
    time_s: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On three made-up arrays, from the first third of a run on."""
    told = []
    for number in range(3):
        with monkeypatch.context() as patched:
            told += TimedMachine(tmp_path / str(number), patched, number).told(time_s)
    assert len(told) > 9
    assert sum(each.is_true for each in told) >= 0.7 * len(told)
    assert median(each.left.most_s / each.left.least_s for each in told if each.left.least_s) < 4
    allowed_s = time_s + run_progress.ENDING_S + 1
    assert all(each.left.most_s <= allowed_s - each.at_s for each in told)
