"""What a run decides, on an array that is made up."""

import dataclasses
import math
import random
from collections.abc import Container, Sequence
from pathlib import Path

import fake_run
import pytest
from fake_run import Machine

from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import KnobShare, Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.stats.sequential import Held
from autotune.store.database import Store


class Calmable(Machine):
    """The slower its check, the calmer it is."""

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        if phase.name != "resync":
            return result
        speed = int(self.setting["sync_speed_max"]) / 200_000
        scale = {"resync.throughput": speed**4, "resync.p99": speed}
        figures = {n: Estimate(e.value * scale[n], e.spread) for n, e in result.figures.items()}
        return dataclasses.replace(result, figures=figures)


@pytest.mark.parametrize(("ceiling_ms", "speed"), [(10, 50_000), (40, 200_000)])
def test_a_ceiling_that_the_originals_break_is_held_at_the_price_of_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ceiling_ms: float, speed: int
) -> None:
    machine = Calmable(tmp_path, monkeypatch)
    ceiling = Ceiling("resync", ceiling_ms * 1e6, None)
    result = machine.run("random", ceilings=(ceiling,))
    assert result.keep
    assert result.winner["sync_speed_max"] == speed
    assert ("slower, but it holds" in result.reason) == (speed == 50_000)


def test_the_ceilings_are_said_when_the_search_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(fake_run.Silent, "step", lambda _self, text: said.append(text))
    Calmable(tmp_path, monkeypatch).run("random", ceilings=(Ceiling("resync", 40e6, None),))
    assert "Searching; ceilings: resync.p99 40.0 ms" in said


@pytest.mark.parametrize(("asked_ms", "relaxed"), [(40, False), (1, True)])
def test_the_display_is_told_the_ceilings_that_hold_from_now_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked_ms: int, relaxed: bool
) -> None:
    told: list[dict[str, float]] = []
    monkeypatch.setattr(fake_run.Silent, "ceilings", lambda _self, limits: told.append(limits))
    asked = (Ceiling("resync", asked_ms * 1e6, None),)
    Calmable(tmp_path, monkeypatch).run("random", ceilings=asked)
    assert told[0] == {"resync.p99": asked_ms * 1e6}
    # One that nothing holds gives way to what the array shows as it is.
    assert [20e6 < each["resync.p99"] < 25e6 for each in told[1:]] == [True] * relaxed


def test_a_ceiling_that_the_array_breaks_and_nothing_holds_does_not_end_in_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Calmable(tmp_path, monkeypatch).run("random", ceilings=(Ceiling("resync", 1e6, None),))
    assert result.keep
    assert result.winner["stripe_cache_size"] > 256
    # What was asked for is said to be broken, with what could be asked for.
    assert result.held["resync.p99"] is Held.BROKEN
    said = " ".join(result.words.notes)
    assert "As it is, the array breaks the ceiling for resync.p99: it shows " in said
    assert "No combination that was tried meets the ceiling for resync.p99" in said
    assert "--p99-ceiling resync=2" in said


class Restless(Calmable):
    """Its original settings are no longer so calm when they are measured in the end."""

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        if phase.name != "resync" or seed < 4000 or self.setting["sync_speed_max"] != 200_000:
            return result
        p99 = result.figures["resync.p99"]
        figures = {**result.figures, "resync.p99": Estimate(p99.value * 4, p99.spread)}
        return dataclasses.replace(result, figures=figures)


class Slower:
    """A strategy that tries a slower check, and recommends it."""

    def __init__(self, problem: Problem) -> None:
        self.setting: Setting = {**problem.baseline, "sync_speed_max": 50_000}
        self.asked = False

    def ask(self) -> Setting | None:
        self.asked, asked = True, self.asked
        return None if asked else self.setting

    def tell(self, trial: Trial) -> None:
        self.asked = self.asked or trial.setting == self.setting

    def recommend(self) -> Recommendation:
        return Recommendation(self.setting, Estimate(1.0, 0.1), 1.0)

    def weigh(self, *_: object) -> Weighed:
        return Weighed((), 0.0)


@pytest.mark.parametrize("asked", [True, False])
def test_no_speed_is_given_up_for_a_ceiling_that_nobody_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Slower)
    ceilings = (Ceiling("resync", 40e6, None),) if asked else ()
    result = Restless(tmp_path, monkeypatch).run("random", ceilings=ceilings)
    assert result.keep == asked


class Deceiving(Machine):
    """The first setting that is measured a second time is not what it seemed."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(root, monkeypatch)
        self.seen: set[object] = set()
        self.deceiver: object = None

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        key = setting_key(self.setting)
        if phase.name != "resync" or self.setting["stripe_cache_size"] == 256:
            return result
        if key in self.seen and self.deceiver is None:
            self.deceiver = key
        self.seen.add(key)
        times = 5 if key == self.deceiver else 1
        p99 = result.figures["resync.p99"]
        figures = {**result.figures, "resync.p99": Estimate(p99.value * times, p99.spread)}
        return dataclasses.replace(result, figures=figures)


def test_when_the_best_breaks_its_ceiling_in_the_end_the_next_best_is_proven(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Deceiving(tmp_path, monkeypatch)
    result = machine.run("random", ceilings=(Ceiling("resync", 40e6, None),))
    assert machine.deceiver is not None
    assert result.keep
    assert setting_key(result.winner) != machine.deceiver


class Disturbed(Machine):
    """Another load takes half of everything in these trials."""

    while_: Container[int] = (8, 9)

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        if seed // 1000 not in self.while_:
            return result
        figures = {n: Estimate(e.value / 2, e.spread) for n, e in result.figures.items()}
        return dataclasses.replace(result, figures=figures)


def test_what_the_original_settings_show_in_the_proof_tells_how_the_array_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Disturbed(tmp_path, monkeypatch)
    machine.while_ = range(11, 99)
    result = machine.run("random", trials=6)
    roles = [role for _, role, *_ in machine.stored(1)]
    assert roles[10:].count("baseline") == 0
    assert "confirm-baseline" in roles[10:]
    assert result.drifts["write.throughput"] == pytest.approx(0.5, rel=0.1)


def test_after_a_disturbance_the_baseline_comes_back_until_it_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Disturbed(tmp_path, monkeypatch)
    result = machine.run("random", trials=9)
    roles = [role for _, role, *_ in machine.stored(1)]
    assert roles[:13] == [
        *("baseline", "baseline", *["search"] * 6, "baseline"),
        *("search", "search", "baseline", "search"),
    ]
    assert result.drifts["write.throughput"] == pytest.approx(0.5, rel=0.1)
    assert result.keep
    assert result.winner["stripe_cache_size"] == 2048


def test_a_search_that_ends_in_a_disturbance_ends_with_the_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Disturbed(tmp_path, monkeypatch)
    machine.run("random", trials=7)
    roles = [role for _, role, *_ in machine.stored(1)]
    assert roles[:11] == ["baseline", "baseline", *["search"] * 6, "baseline", "search", "baseline"]


class Insisting:
    """A strategy that asks for a setting twice, then for it with another cache."""

    def __init__(self, problem: Problem) -> None:
        ahead = {**problem.baseline, "read_ahead_kb": 768}
        self.asks = [ahead, ahead, {**ahead, "stripe_cache_size": 512}]
        self.baseline = problem.baseline

    def ask(self) -> Setting | None:
        return self.asks[0] if self.asks else None

    def tell(self, trial: Trial) -> None:
        if self.asks and trial.setting == self.asks[0]:
            del self.asks[0]

    def recommend(self) -> Recommendation:
        return Recommendation(self.baseline, Estimate(1.0, 0.1), 1.0)

    def weigh(self, *_: object) -> Weighed:
        return Weighed((), 0.0)


def test_only_what_moved_is_measured_but_all_of_it_when_asked_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Insisting)
    machine = Machine(tmp_path, monkeypatch)
    machine.run("random", trials=3)
    phases = [[name for number, name in machine.measured if number == trial] for trial in (3, 4, 5)]
    assert phases == [["read"], ["read", "write", "resync"], ["write", "resync"]]


class Doubting(Slower):
    """A strategy that recommends two changes, and needs some trials to know that one of them brings
    nothing; before that it would rather keep it."""

    knows_after = 3

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.setting = {**problem.baseline, "stripe_cache_size": 2048, "scheduler": "none"}

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        useful, idle = (
            KnobShare(knob, "before", setting[knob], Estimate(1.1, 0.1), needed)
            for knob, needed in (("stripe_cache_size", True), ("scheduler", doubtful))
        )
        idle = dataclasses.replace(idle, before="mq-deadline")
        asked = [t for t in trials if t.setting["stripe_cache_size"] == 2048]
        return Weighed((useful, idle), 0.0 if len(asked) > self.knows_after else 0.05)


class Undecided(Doubting):
    """One that never knows."""

    knows_after = 100


@pytest.mark.parametrize(
    ("strategy", "tested", "kept"),
    [
        (Doubting, ["mq-deadline", "none", "mq-deadline"], "mq-deadline"),
        (Undecided, ["mq-deadline", "none"] * 2, "none"),
    ],
)
def test_a_doubtful_change_is_tested_until_it_is_known_whether_it_is_needed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    strategy: type[Doubting],
    tested: list[str],
    kept: str,
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: strategy)
    machine = Machine(tmp_path, monkeypatch)
    result = machine.run("random")
    trials = Store(machine.state).trials(1)
    assert [t.requested["scheduler"] for t in trials if t.role == "check"] == tested
    assert result.keep
    assert result.winner["stripe_cache_size"] == 2048
    assert result.winner["scheduler"] == kept


class Loud(Machine):
    """What it reads ahead makes it read faster; its checks scatter by a half."""

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        scale = {
            "read": 1.3 if self.setting["read_ahead_kb"] == 16384 else 1.0,
            "resync": math.exp(random.Random(seed).gauss(0, 0.5)),
        }.get(phase.name, 1.0)
        rate = result.figures[f"{phase.name}.throughput"]
        figures = {f"{phase.name}.throughput": Estimate(rate.value * scale, rate.spread)}
        return dataclasses.replace(result, figures={**result.figures, **figures})


class Greedy(Slower):
    """A strategy that recommends a change that helps, and one that is lost in the noise."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.setting = {**problem.baseline, "read_ahead_kb": 16384, "sync_speed_max": 500_000}


def test_what_the_noise_of_another_figure_hides_is_proven_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Greedy)
    machine = Loud(tmp_path, monkeypatch)
    result = machine.run("random")
    trials = Store(machine.state).trials(1)
    first = next(t.requested for t in trials if t.role == "confirm-winner")
    assert (first["read_ahead_kb"], first["sync_speed_max"]) == (16384, 500_000)
    assert result.keep
    assert result.winner["read_ahead_kb"] == 16384
    assert result.winner["sync_speed_max"] == 200_000
    # The proof of the rest measured nothing else.
    assert trials[-1].measured == ("read",)
