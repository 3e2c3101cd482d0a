"""After a proof that is kept, the time that is left goes to what promised more."""

import dataclasses
import math
import random
from collections.abc import Sequence
from pathlib import Path

import fake_run
import pytest
from fake_run import Machine
from stored_reports import asked, documents

from autotune.errors import SyncEndedError
from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.strategy import KnobShare, Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.stats.sequential import Held
from autotune.stats.verdict import Comparison, Conclusion, Verdict
from autotune.store import TrialRecord
from autotune.tuning import phase_runs, run_progress
from autotune.tuning.confirm import Decision
from autotune.tuning.prove import Proven
from autotune.tuning.time_left import RunPlan, TimeLeft, time_left

MODEST, BOLD = {"stripe_cache_size": 512}, {"stripe_cache_size": 1024}


class Stepwise:
    """Recommends a modest change, and a bold one once that was proven."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.told = problem, 0

    def ask(self) -> Setting | None:
        return None

    def tell(self, trial: Trial) -> None:
        pass

    def recommend(self) -> Recommendation:
        had = self.problem.proven
        change = MODEST if had is None else BOLD
        setting = {**self.problem.baseline, **change}
        if not self.problem.allowed(setting):
            return Recommendation(self.problem.baseline, Estimate(1.0, 0.1), 1.0)
        return Recommendation(setting, Estimate(1.2 if had is None else 1.5, 0.1), 1.0)

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return Weighed((), 0.0)


class Bench1024(Machine):
    """What the bold setting does to each figure, and what happens when it is measured."""

    bold: dict[str, float] = dataclasses.field(default_factory=dict)
    ahead: dict[str, float] = dataclasses.field(default_factory=dict)
    fails: Exception | None = None

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        more = self.ahead if self.setting["read_ahead_kb"] == 1536 else {}
        if self.setting["stripe_cache_size"] == BOLD["stripe_cache_size"]:
            if self.fails:
                raise self.fails
            more = self.bold
        figures = {
            name: Estimate(e.value * more.get(name, 1.0), e.spread)
            for name, e in result.figures.items()
        }
        return dataclasses.replace(result, figures=figures)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench1024:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Stepwise)
    made = Bench1024(tmp_path, monkeypatch)
    made.bold, made.ahead = {}, {}
    return made


def test_what_promised_more_is_kept_if_it_brings_more(machine: Bench1024) -> None:
    result = machine.run("random")
    assert result.keep
    assert result.winner["stripe_cache_size"] == 1024
    ((setting, decision),) = result.refused
    assert setting["stripe_cache_size"] == 512
    assert not decision.keep
    assert decision.reason.startswith("it is better too, but by less: ×1.2")
    text = " ".join(asked(machine.state, "report", "1", "--format", "text").split())
    assert "Also measured in turn, and not kept: stripe_cache_size 512. Why: it is better" in text


@pytest.mark.parametrize(
    ("bold", "why"),
    [
        (
            {"resync.p99": 3.0},
            "the combination that promised more broke the ceiling for resync.p99",
        ),
        ({"write.throughput": 0.5, "resync.throughput": 0.7}, "it is better too, but by less"),
    ],
)
def test_what_was_proven_before_stays_if_that_brings_no_more(
    machine: Bench1024, bold: dict[str, float], why: str
) -> None:
    machine.bold = bold
    result = machine.run("random")
    assert result.keep
    assert result.winner["stripe_cache_size"] == 512
    assert result.reason == "better beyond noise"
    ((setting, decision),) = result.refused
    assert setting["stripe_cache_size"] == 1024
    assert decision.reason.startswith(why)
    # All that is shown is of the answer's own proof.
    (shown,) = documents(machine.state, "1")
    assert shown["compared"]["setting"] == "stripe_cache_size 512"
    figures = {each["name"]: each for each in shown["figures"]}
    for name in ("write.throughput", "resync.throughput"):
        before, after = figures[name]["before"], figures[name]["after"]
        assert before == pytest.approx(result.before[name].value)
        assert after == pytest.approx(result.after[name].value)
        assert after / before == pytest.approx(figures[name]["change"]["ratio"], rel=0.01)
    numbers = [trial["number"] for trial in shown["trials"] if trial["setting"].endswith("512")]
    assert shown["compared"]["after"] == numbers
    text = " ".join(asked(machine.state, "report", "1", "--format", "text").split())
    assert f"Also measured in turn, and not kept: stripe_cache_size 1024. Why: {why}" in text


def test_without_time_for_it_nothing_more_is_proven(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autotune.tuning.prove.pairs_left", lambda *_: 1)
    result = machine.run("random")
    assert (result.winner["stripe_cache_size"], result.refused) == (512, ())


def test_what_was_proven_stands_if_the_sync_ends_meanwhile(machine: Bench1024) -> None:
    machine.fails = SyncEndedError("the sync is over")
    result = machine.run("random")
    assert (result.keep, result.winner["stripe_cache_size"]) == (True, 512)


class Doubtful(Stepwise):
    """Doubts, once something is proven, that what it then recommends needs all its changes."""

    def recommend(self) -> Recommendation:
        recommended = super().recommend()
        setting = {**recommended.setting, "read_ahead_kb": 1536}
        more = self.problem.proven is not None
        return dataclasses.replace(recommended, setting=setting) if more else recommended

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        if setting["read_ahead_kb"] != 1536:
            return Weighed((), 0.0)
        share = KnobShare("read_ahead_kb", 384, 1536, Estimate(1.05, 0.1), needed=False)
        return Weighed((share,), loss=0.5)


def test_what_was_proven_stands_if_the_sync_ends_while_changes_are_tested(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Doubtful)
    machine.fails = SyncEndedError("the sync is over")
    result = machine.run("random")
    assert (result.keep, result.winner["stripe_cache_size"]) == (True, 512)


class Both(Stepwise):
    """Recommends a change that brings something and one that moves reads alone."""

    def recommend(self) -> Recommendation:
        setting = {**self.problem.baseline, **MODEST, "read_ahead_kb": 1536}
        if self.problem.proven is None and self.problem.allowed(setting):
            return Recommendation(setting, Estimate(1.2, 0.1), 1.0)
        return Recommendation(self.problem.baseline, Estimate(1.0, 0.1), 1.0)


@pytest.mark.parametrize(("faster", "ahead"), [(1.0, 384), (1.3, 1536)])
def test_a_change_that_brought_nothing_is_not_kept(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch, faster: float, ahead: int
) -> None:
    """The same without it is proven, too; only what it can move is not measured again."""
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Both)
    machine.ahead = {"read.throughput": faster}
    result = machine.run("random")
    assert result.keep
    assert (result.winner["stripe_cache_size"], result.winner["read_ahead_kb"]) == (512, ahead)
    assert [decision.reason.partition(":")[0] for _, decision in result.refused] == [
        "it is better too, but its other changes were not shown to bring anything"
    ] * (faster == 1.0)
    (shown,) = documents(machine.state, "1")
    assert ("read_ahead_kb" in shown["compared"]["setting"]) == (faster != 1.0)
    phases = {each["name"].partition(".")[0] for each in shown["figures"] if each["after"]}
    assert ("read" in phases) == (faster != 1.0)


class Calmer(Both):
    """Tries and recommends what makes reads faster and what mends a ceiling."""

    @property
    def _setting(self) -> Setting:
        return {**self.problem.baseline, "read_ahead_kb": 1536, "sync_speed_max": 50000}

    def ask(self) -> Setting | None:
        return None if self.told else self._setting

    def tell(self, trial: Trial) -> None:
        self.told += trial.setting == self._setting

    def recommend(self) -> Recommendation:
        if self.problem.proven is None and self.problem.allowed(self._setting):
            return Recommendation(self._setting, Estimate(1.2, 0.1), 1.0)
        return Recommendation(self.problem.baseline, Estimate(1.0, 0.1), 1.0)


def test_a_change_that_mends_a_ceiling_stays_though_its_noise_is_large(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Calmer)
    machine.ahead = {"read.throughput": 1.3}
    measure = machine.measure

    def noisy(phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = measure(phase, bench, seed, *rest)
        if "resync.p99" not in result.figures:
            return result
        value = 13e6 if machine.setting["sync_speed_max"] == 50000 else 20e6
        value *= math.exp(random.Random(seed).gauss(0, 0.05))
        figures = {**result.figures, "resync.p99": Estimate(value, 0.6)}
        return dataclasses.replace(result, figures=figures)

    monkeypatch.setattr(phase_runs, "measure", noisy)
    result = machine.run("random", ceilings=(Ceiling("resync", 16e6, None),))
    assert result.keep
    assert (result.winner["sync_speed_max"], result.winner["read_ahead_kb"]) == (50000, 1536)
    assert result.verdict is not None
    assert result.verdict.figures["resync.p99"].conclusion is Conclusion.SAME
    assert result.refused == ()


class Bold(Calmer):
    """Recommends, once something is proven, what is faster and mends nothing."""

    def recommend(self) -> Recommendation:
        if self.problem.proven is None:
            return super().recommend()
        setting = {**self.problem.baseline, "read_ahead_kb": 1536}
        return Recommendation(setting, Estimate(1.34, 0.05), 1.0)


def test_what_mends_a_ceiling_is_not_given_up_for_what_is_faster(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proof of reads alone would say nothing of it."""
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Bold)
    machine.ahead = {"read.throughput": 1.3}
    measure = machine.measure

    def slower(phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = measure(phase, bench, seed, *rest)
        if phase.name != "resync" or machine.setting["sync_speed_max"] != 50000:
            return result
        p99, rate = result.figures["resync.p99"], result.figures["resync.throughput"]
        shown = {
            "resync.p99": Estimate(p99.value * 0.6, p99.spread),
            "resync.throughput": Estimate(rate.value * 0.9, rate.spread),
        }
        return dataclasses.replace(result, figures={**result.figures, **shown})

    monkeypatch.setattr(phase_runs, "measure", slower)
    result = machine.run("random", ceilings=(Ceiling("resync", 16e6, None),))
    assert result.keep
    assert result.winner["sync_speed_max"] == 50000
    assert result.held["resync.p99"] is Held.HOLDS


def test_of_two_that_were_proven_the_one_that_holds_its_ceiling_is_kept() -> None:
    def proven(name: str, gain: float, held: Held) -> Proven:
        overall = Comparison.of(math.log(gain), 0.01)
        verdict = Verdict(overall, {})
        decision = Decision(True, "", verdict, {}, {}, {"resync.p99": held})
        return Proven({"scheduler": name}, decision)

    calm, fast = proven("calm", 1.09, Held.HOLDS), proven("fast", 1.34, Held.BROKEN)
    for found in (calm.better_of(fast), fast.better_of(calm)):
        assert found.winner == {"scheduler": "calm"}
        ((setting, decision),) = found.others
        assert setting == {"scheduler": "fast"}
        assert "but resync.p99 stays above its ceiling then: ×1.34" in decision.reason


def test_without_time_to_prove_fewer_changes_all_are_kept(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Both)
    monkeypatch.setattr("autotune.tuning.prove.pairs_left", lambda *_: 1)
    result = machine.run("random")
    assert (result.winner["read_ahead_kb"], result.refused) == (1536, ())


def test_each_proof_leaves_room_for_fewer_others(
    machine: Bench1024, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a run says is left depends on how many may follow."""
    seen: dict[int, bool] = {}

    def reckon(plan: RunPlan, records: list[TrialRecord], allowed_s: float) -> TimeLeft:
        if plan.role == "confirm-winner":
            seen[plan.proof_after] = plan.others
        return time_left(plan, records, allowed_s)

    monkeypatch.setattr(run_progress, "time_left", reckon)
    machine.run("random")
    assert list(seen.values()) == [True, True]
