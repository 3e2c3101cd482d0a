"""Answers from stored trials: the front, the three names, other ceilings, honest profiles."""

import dataclasses
import math
from pathlib import Path

import pytest
from synthetic_run import BASELINE, MS, baseline, figures, problem, run, trial

from autotune.errors import RefusalError, UsageError
from autotune.knobs.profile_file import load_profile, save_profile
from autotune.problem.ceilings import parse_ceiling
from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.results.ended_early import sentence
from autotune.results.pareto import Point, PooledTrials, front
from autotune.results.proof import original, proofs
from autotune.results.solve import NAMES, named, pareto, solve
from autotune.results.stored_run import read
from autotune.results.study import study_of
from autotune.stats.verdict import judge
from autotune.store import TrialRecord
from autotune.tuning.remarks import _looked_better

FAST = {"stripe_cache_size": 4096}
MIDDLE = {"stripe_cache_size": 1024}
CALM = {"sync_speed_max": 5000}
TRIALS = [
    baseline(1),
    baseline(2),
    trial(3, "search", FAST, figures(300, 60, 150, 80)),
    trial(4, "search", MIDDLE, figures(180, 29, 110, 41)),
    trial(5, "search", CALM, figures(100, 30, 30, 12), measured=("resync",)),
]


def changed(point: Point | None) -> dict[str, object]:
    assert point is not None
    return {k: v for k, v in point.setting.items() if v != BASELINE[k]}


def test_the_three_answers_are_what_their_names_say() -> None:
    answers = named(run(), TRIALS)
    assert changed(answers.throughput) == FAST
    assert changed(answers.balanced) == MIDDLE
    # sync_speed_max 5000 is far calmer, but slower than the baseline.
    assert changed(answers.latency) == {}


def test_a_calm_setting_that_is_no_slower_is_the_latency_answer() -> None:
    calm = trial(5, "search", CALM, figures(100, 30, 99.5, 12), measured=("resync",))
    assert changed(named(run(), [*TRIALS[:4], calm]).latency) == CALM


def test_an_answer_holds_each_ceiling_not_only_their_mean() -> None:
    # The write p99 is halved, the sync's is twice the baseline's: the mean is as before.
    mixed = trial(3, "search", MIDDLE, figures(200, 15, 120, 80))
    trials = [baseline(1), baseline(2), mixed]
    assert changed(named(run(), trials).balanced) == {}
    assert changed(named(run(), trials).throughput) == MIDDLE


def test_a_setting_of_the_users_own_ceiling_bounds_the_throughput_answer_too() -> None:
    document = problem(({"phase": "write", "limit_ns": 50 * MS, "times_idle": None},))
    assert changed(named(run(document=document), TRIALS).throughput) == MIDDLE


def test_a_finished_runs_balanced_answer_is_what_it_decided() -> None:
    document = problem(idle=11 * MS, write=33 * MS, resync=44 * MS)
    kept = named(run("done", document), TRIALS)
    assert changed(kept.balanced) == {}


def test_what_no_changed_knob_moves_is_equal_and_certain() -> None:
    point = next(p for p in pareto(run(), TRIALS) if changed(p) == CALM)
    # Half of the weight is on the sync: 0.3 of the baseline's rate.
    assert point.gain.value == pytest.approx(math.sqrt(0.3))
    assert point.gain.spread < 0.02
    assert point.figures["write.throughput"].value == pytest.approx(100e6)


def test_repeats_of_a_setting_are_pooled_and_their_scatter_counts() -> None:
    trials = [
        baseline(1),
        baseline(2),
        trial(3, "search", MIDDLE, figures(160, 30, 100, 40)),
        trial(4, "search", MIDDLE, figures(250, 30, 100, 40)),
    ]
    pool = PooledTrials(read(run()), trials)
    estimate = pool.figures({**BASELINE, **MIDDLE})["write.throughput"]
    assert estimate.value == pytest.approx(200e6)
    assert estimate.spread > 0.1


def test_a_drift_that_goes_through_the_original_settings_says_nothing_of_the_noise() -> None:
    """After the first two they agree with the drift by construction, whatever the noise is."""

    def shown(p99: float) -> dict[str, Estimate]:
        return figures(100, 30, 100, p99)

    start = [trial(n, "baseline", {}, shown(p99)) for n, p99 in ((1, 40), (4, 41))]
    pair = [trial(n, "search", CALM, shown(p99)) for n, p99 in ((2, 30), (3, 60))]
    later = [trial(n, "baseline", {}, shown(p99)) for n, p99 in enumerate((100, 60, 120, 90), 5)]
    alone, drifted = (
        PooledTrials(read(run()), each) for each in ([*start, *pair], start + pair + later)
    )
    baseline = {**BASELINE, **CALM}
    known, seen = (pool.figures(baseline)["resync.p99"].spread for pool in (alone, drifted))
    assert seen >= known > 0.2


def test_one_pair_does_not_make_the_milliseconds_of_a_whole_run() -> None:
    turns = [
        trial(6, "confirm-winner", FAST, figures(110, 30, 100, 44)),
        trial(7, "confirm-baseline", {}, figures(100, 30, 100, 38)),
        trial(8, "confirm-baseline", {}, figures(100, 30, 100, 38)),
        trial(9, "confirm-winner", FAST, figures(110, 30, 100, 44)),
    ]
    one, two = (original([*TRIALS, *turns[:count]])["resync.p99"].value for count in (2, 4))
    assert one == pytest.approx((40 * 40 * 38) ** (1 / 3) * MS)
    assert two == pytest.approx(38 * MS)
    # What the pair showed stands beside that as it stood beside its own original settings.
    points = study_of(run(), [*TRIALS, *turns[:2]]).points
    fast = next(point for point in points if changed(point) == FAST)
    assert fast.figures["resync.p99"].value == pytest.approx(one * 44 / 38)


def test_one_lucky_trial_does_not_beat_a_well_known_setting() -> None:
    noisy = {n: Estimate(e.value, 0.4) for n, e in figures(200, 29, 115, 41).items()}
    trials = [*TRIALS, trial(6, "search", {"stripe_cache_size": 2048}, noisy)]
    assert changed(solve(run(), trials).point) == MIDDLE


def test_a_trial_that_was_given_up_is_no_answer() -> None:
    aborted = trial(3, "search", FAST, figures(300, 30, 150, 40), status=Status.ABORTED)
    assert all(
        p is not None and changed(p) != FAST
        for p in vars(named(run(), [*TRIALS[:2], aborted, *TRIALS[3:]])).values()
    )


def test_a_setting_that_was_given_up_once_is_no_answer_though_it_once_did_well() -> None:
    aborted = trial(6, "search", MIDDLE, figures(180, 90, 110, 41), status=Status.ABORTED)
    assert changed(solve(run(), [*TRIALS, aborted]).point) != MIDDLE


def test_what_was_proven_is_an_answer_whatever_was_cut_before_or_after() -> None:
    """As where there is no memory left for the long load of what was kept."""
    trials = [
        *TRIALS,
        trial(6, "search", MIDDLE, figures(180, 90, 110, 41), status=Status.ABORTED),
        trial(7, "confirm-winner", MIDDLE, figures(180, 29, 110, 41)),
        trial(8, "confirm-baseline", {}, figures(100, 30, 100, 40)),
        trial(9, "long-winner", MIDDLE, {}, status=Status.INFEASIBLE),
    ]
    assert MIDDLE in [changed(point) for point in pareto(run(), trials)]
    assert changed(solve(run(), trials).point) == MIDDLE


def test_a_figure_that_was_carried_over_counts_once() -> None:
    carried = [trial(n, "search", CALM, TRIALS[0].figures, measured=("resync",)) for n in (3, 4, 5)]
    pool = PooledTrials(read(run()), [*TRIALS[:1], *carried])
    assert pool.figures(BASELINE)["write.throughput"].spread == pytest.approx(0.02)


def test_the_front_has_no_point_that_another_beats() -> None:
    kept = front(pareto(run(), TRIALS))
    assert [changed(point) for point in kept] == [CALM, {}, MIDDLE, FAST]
    worse = trial(6, "search", {"stripe_cache_size": 512}, figures(120, 90, 100, 90))
    assert len(pareto(run(), [*TRIALS, worse])) == len(kept)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [("100ms", FAST), ("50ms", MIDDLE), ("resync=9x", FAST), ("write=32ms", MIDDLE)],
)
def test_other_ceilings_give_other_answers(asked: str, expected: dict[str, object]) -> None:
    ceilings = [parse_ceiling(asked)]
    if asked == "resync=9x":
        # The others keep the default, which the fast one breaks for writes.
        assert changed(solve(run(), TRIALS, ceilings).point) == MIDDLE
        ceilings.append(parse_ceiling("write=7x"))
    assert changed(solve(run(), TRIALS, ceilings).point) == expected


def test_a_ceiling_that_nothing_held_names_the_lowest_that_was() -> None:
    asked = [parse_ceiling("35ms")]
    original = r"the original settings, showed .*resync\.p99 40\.0 ms where 35"
    with pytest.raises(RefusalError, match=original):
        solve(run(), TRIALS[:4], asked)
    aborted = trial(6, "search", MIDDLE, figures(180, 30, 110, 38), status=Status.ABORTED)
    with pytest.raises(RefusalError, match=r"trial 6, showed resync\.p99 38\.0 ms where 35"):
        solve(run(), [*TRIALS[:4], aborted], asked)


def test_a_ceiling_below_idle_names_the_lowest_that_was_held_too() -> None:
    with pytest.raises(RefusalError, match=r"idle array already takes 10\.0 ms.*held is 40\.0 ms"):
        solve(run(), TRIALS[:3], [parse_ceiling("5ms")])


def test_a_run_that_was_cut_in_its_first_trial_has_no_names() -> None:
    assert named(run(), []) is None


def test_a_ceiling_of_what_was_not_measured_is_not_said_to_hold() -> None:
    few = {n: e for n, e in figures(100, 30, 100, 40).items() if n != "resync.p99"}
    trials = [trial(1, "baseline", {}, few), trial(2, "search", FAST, few)]
    with pytest.raises(RefusalError, match='no p99 of the phase "resync"'):
        solve(run(), trials, [parse_ceiling("resync=1s")])
    assert solve(run(), trials, [parse_ceiling("1s")])


def test_wrong_names_and_phases_are_wrong_usage() -> None:
    with pytest.raises(UsageError, match="throughput, balanced, latency"):
        solve(run(), TRIALS, (), "speed")
    with pytest.raises(UsageError, match="no phase"):
        solve(run(), TRIALS, [parse_ceiling("nowhere=20ms")])


def test_a_run_that_nothing_can_be_said_of_says_so() -> None:
    with pytest.raises(RefusalError, match="original settings"):
        solve(run(), [])
    with pytest.raises(RefusalError, match="another version"):
        solve(run(document={"workload": {}}), TRIALS)


def test_a_run_whose_baseline_lacks_a_figure_says_so() -> None:
    lacking = {n: e for n, e in figures(100, 30, 100, 40).items() if n != "write.throughput"}
    trials = [trial(1, "baseline", {}, lacking), trial(2, "search", FAST, lacking)]
    for asked in ([], [parse_ceiling("1ms")]):
        with pytest.raises(RefusalError, match=r"no write\.throughput of the original|idle array"):
            solve(run(), trials, asked)
    assert named(run(), trials) is None


def test_the_original_settings_need_no_profile() -> None:
    slower = trial(3, "search", FAST, figures(90, 30, 90, 40))
    assert solve(run(), [*TRIALS[:2], slower]).profile is None


def test_a_run_that_tried_nothing_else_has_no_answer() -> None:
    with pytest.raises(RefusalError, match="before any other combination was tried"):
        solve(run(), TRIALS[:2])


def test_what_was_measured_in_turn_says_so_and_has_the_gain_of_that() -> None:
    """The first of two settings that were measured in turn was not kept."""
    turns = [("confirm-winner", FAST), ("confirm-baseline", {})] * 2
    turns[2:] = reversed(turns[2:])
    proof = [
        trial(n, role, changes, figures(110 if changes else 100, 30, 100, 40))
        for n, (role, changes) in enumerate(turns, 6)
    ]
    next_one = [
        trial(10, "confirm-winner", MIDDLE, figures(180, 29, 110, 41)),
        trial(11, "confirm-baseline", {}, figures(100, 30, 100, 40)),
    ]
    records = [*TRIALS, *proof, *next_one]
    assert [each.trials for each in proofs(records)] == [(6, 7, 8, 9), (10, 11)]
    fast = solve(run(), records, [parse_ceiling("100ms")], "throughput").point
    assert changed(fast) == MIDDLE
    found = {tuple(changed(p).items()): p for p in study_of(run(), records).points}
    refused = found[tuple(FAST.items())]
    assert refused.in_turn
    assert not refused.confirmed
    assert refused.gain.value == pytest.approx(1.1**0.5)
    assert not found[tuple(CALM.items())].in_turn


def test_a_run_that_was_cut_in_a_pair_keeps_its_earlier_proofs() -> None:
    whole = [
        trial(6, "confirm-winner", FAST, figures(110, 30, 100, 40)),
        trial(7, "confirm-baseline", {}, figures(100, 30, 100, 40)),
    ]
    for cut in ([], [trial(8, "confirm-winner", MIDDLE, figures(180, 29, 110, 41))]):
        records = [*TRIALS, *whole, *cut]
        assert [each.trials for each in proofs(records)] == [(6, 7)]
        found = {tuple(changed(p).items()): p for p in study_of(run("running"), records).points}
        assert found[tuple(FAST.items())].in_turn
        # One pair is no surer than repeats are: the first trial of this setting showed 300.
        assert found[tuple(FAST.items())].gain.interval[0] < 1


def test_a_proof_that_was_cut_is_no_surer_than_one_that_was_decided() -> None:
    """Two trials and what was known before them: their mean looks surer than it is."""
    start = [trial(n, "baseline", {}, figures(100 + n, 30, 100, 40)) for n in (1, 2)]
    pair = [
        trial(3, "confirm-winner", FAST, figures(110, 30, 100, 40)),
        trial(4, "confirm-baseline", {}, figures(100, 30, 100, 40)),
    ]
    study = study_of(run(), [*start, *pair])
    (shown,) = study.in_turn.values()
    point = next(p for p in study.points if changed(p) == FAST)
    figures_of = {n: [r.figures for r in pair if bool(changed_of(r)) == n] for n in (True, False)}
    least = judge(study.every, figures_of[True], figures_of[False], [r.figures for r in start])
    assert point.gain == shown.gain
    assert shown.gain.value == pytest.approx(1.1**0.5)
    assert shown.gain.interval[1] > least.overall.high > 1.05


def changed_of(record: TrialRecord) -> dict[str, object]:
    return {k: v for k, v in record.requested.items() if v != BASELINE[k]}


def test_a_greater_gain_of_the_search_is_told_of_beside_what_is_kept() -> None:
    seen = study_of(run(), TRIALS[:4]).points
    kept, fast = (next(p for p in seen if changed(p) == each) for each in (MIDDLE, FAST))
    figures_ = study_of(run(), TRIALS[:4]).every
    free = [figure.without_limit() for figure in figures_]
    (said,) = _looked_better(free, seen, kept, BASELINE)
    assert "looked better than what is kept: stripe_cache_size 4096: overall ×2.12" in said
    # What breaks a ceiling is no question, nor is what was measured in turn, or is no faster.
    assert not _looked_better(figures_, seen, kept, BASELINE)
    turned = [p if p is not fast else dataclasses.replace(p, in_turn=True) for p in seen]
    assert not _looked_better(free, turned, kept, BASELINE)
    assert not _looked_better(free, seen, fast, BASELINE)


def test_an_answer_is_chosen_by_the_interval_that_it_is_told_with() -> None:
    """A proof allows for having looked after each pair, which its trials alone do not show."""
    small = {"stripe_cache_size": 512}
    trials = [
        *(baseline(1), baseline(2), trial(3, "search", small, figures(140, 30, 100, 40))),
        trial(4, "confirm-winner", MIDDLE, figures(180, 30, 100, 40)),
        trial(5, "confirm-baseline", {}, figures(100, 30, 100, 40)),
    ]
    wide = {"ratio": 1.34, "low": 0.6, "high": 3.0, "conclusion": "unclear"}
    said = {"refused": [{"setting": {**BASELINE, **MIDDLE}, "gain": wide, "figures": {}}]}
    roomy = problem(idle=1e9, write=1e9, resync=1e9)
    for told, best in ((None, MIDDLE), (said, small)):
        kept = dataclasses.replace(run("done", roomy), said=told)
        answers = named(kept, trials)
        assert answers is not None
        assert changed(answers.throughput) == best
        assert (MIDDLE in map(changed, pareto(kept, trials))) == (best == MIDDLE)


@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_was_not_confirmed_says_so_in_its_profile(name: str) -> None:
    solution = solve(run(), TRIALS, [parse_ceiling("100ms")], name)
    if solution.profile is None:
        assert changed(solution.point) == {}
        return
    assert not solution.profile.evidence.confirmed
    assert not solution.point.confirmed
    assert solution.profile.ram_bytes == solution.ram_bytes == 160
    evidence = solution.profile.evidence
    assert evidence.low < evidence.gain < evidence.high
    assert evidence.figures["resync.p99"].ceiling == 100 * MS
    assert evidence.figures["write.p99"].conclusion == "worse"
    assert "idle.p99" not in evidence.figures


def test_a_confirmed_answer_keeps_the_evidence_of_its_run() -> None:
    first = solve(run(), TRIALS).profile
    assert first is not None
    proven = first.model_dump(mode="json")
    proven["evidence"] |= {"confirmed": True, "gain": 1.37}
    document = problem(idle=11 * MS, write=33 * MS, resync=44 * MS)
    solution = solve(run("done", document, proven), TRIALS, [parse_ceiling("50ms")])
    assert solution.point.confirmed
    assert solution.profile is not None
    assert solution.profile.evidence.confirmed
    assert solution.profile.evidence.gain == 1.37
    assert solution.profile.evidence.figures["write.p99"].ceiling == 50 * MS


def test_what_is_called_throughput_is_no_slower_than_what_was_proven() -> None:
    unsure = {"write.throughput": Estimate(170e6, 0.2)}
    turns = [figures(n, 30, 100, 40) | (unsure if n > 100 else {}) for n in (100, 170, 170, 100)]
    roles = ("confirm-baseline", "confirm-winner", "confirm-winner", "confirm-baseline")
    trials = [
        *(baseline(1), baseline(2), trial(3, "search", FAST, figures(165, 30, 100, 40))),
        *(
            trial(number, role, MIDDLE if role == "confirm-winner" else {}, shown)
            for number, role, shown in zip(range(4, 8), roles, turns, strict=True)
        ),
    ]
    proven = solve(run(), trials, name="balanced").profile
    assert proven is not None
    document = proven.model_dump(mode="json") | {"knobs": {**BASELINE, **MIDDLE}}
    document["evidence"] |= {"confirmed": True}
    roomy = problem(idle=1e9, write=1e9, resync=1e9)
    answers = named(run("done", roomy, document), trials)
    assert answers.throughput is not None
    assert answers.balanced is not None
    assert answers.throughput.gain.value >= answers.balanced.gain.value


def test_a_saved_answer_can_be_loaded(tmp_path: Path) -> None:
    profile = solve(run(), TRIALS).profile
    assert profile is not None
    save_profile(profile, tmp_path / "p.json")
    assert load_profile(tmp_path / "p.json") == profile


def test_what_was_ended_early_though_other_ceilings_allow_it_is_said() -> None:
    shown = figures(300, 60, 150, 80)
    shown.pop("resync.throughput")
    ended = trial(3, "search", FAST, shown, status=Status.ABORTED)
    ended = dataclasses.replace(ended, reason="resync.p99 is surely over its ceiling")
    trials = [*TRIALS[:2], ended, *TRIALS[3:]]
    found = solve(run(), trials, [parse_ceiling("200ms")])
    assert found.uncounted == (3,)
    assert found.again == "--p99-ceiling resync=96ms"
    said = sentence(found.uncounted, found.again)
    assert "Trial 3 was ended early" in said
    assert found.again in said
    # It is over these.
    assert solve(run(), trials, [parse_ceiling("70ms")]).uncounted == ()
