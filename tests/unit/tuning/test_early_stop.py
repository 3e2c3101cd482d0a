"""When a trial of the search is ended early."""

from synthetic_run import MS, figure, figures, trial

from autotune.measure.phase import PhaseResult
from autotune.measure.workload import Phase, Probe
from autotune.problem.figure import Figure
from autotune.tuning.early_stop import EarlyEnd

RESYNC = Phase(name="resync", weight=1, check=True, probe=Probe(rate_iops=60))


def hopeless(ceiling_ms: float, shown_ms: float) -> bool:
    """Whether a check is ended that shows so much all the time; it is 40 ms as the array is."""
    limited = [Figure(**figure("resync.p99", ceiling=ceiling_ms * MS))]
    early = EarlyEnd()
    early.learn(trial(1, "baseline", {}, figures(100, 30, 100, 40)), limited)
    histograms = [{int(shown_ms * MS): 60}] * 8
    judge = early.judge(RESYNC, [])
    return judge({}, {"p99": histograms, "write_p99": []}) is not None


def test_a_trial_over_its_ceiling_is_ended() -> None:
    assert hopeless(50, 60)
    assert not hopeless(50, 45)


def test_a_trial_is_not_ended_for_what_the_array_shows_as_it_is() -> None:
    assert not hopeless(20, 40)
    assert hopeless(20, 60)


def test_a_trial_that_cannot_come_up_to_the_best_is_ended() -> None:
    """Of two throughputs that count the same, the second is yet to be measured."""
    counting = [Figure(**figure("write.throughput", 1)), Figure(**figure("resync.throughput", 1))]
    early = EarlyEnd()
    early.learn(trial(1, "baseline", {}, figures(100, 30, 100, 40)), counting)
    early.learn(trial(2, "search", {}, figures(160, 30, 100, 40)), counting)
    for write, ended in ((40, True), (150, False)):
        shown = figures(write, 30, 100, 40)
        first = PhaseResult("write", {"write.throughput": shown["write.throughput"]}, 8.0, True)
        judge = early.judge(RESYNC, [first])
        assert (judge({}, {}) is not None) is ended, write


def test_a_figure_that_the_first_baseline_lacked_is_known_by_a_later_one() -> None:
    """A phase that is short for its array has a figure now and then."""
    counting = [Figure(**figure("write.throughput", 1)), Figure(**figure("resync.throughput", 1))]
    early = EarlyEnd()
    whole = figures(100, 30, 100, 40)
    lacking = {name: shown for name, shown in whole.items() if name != "resync.throughput"}
    early.learn(trial(1, "baseline", {}, lacking), counting)
    early.learn(trial(2, "baseline", {}, whole), counting)
    early.learn(trial(3, "search", {}, figures(160, 30, 100, 40)), counting)
    first = PhaseResult(
        "write", {"write.throughput": figures(40, 30, 100, 40)["write.throughput"]}, 8.0, True
    )
    judge = early.judge(RESYNC, [first])
    assert judge({}, {}) is not None
