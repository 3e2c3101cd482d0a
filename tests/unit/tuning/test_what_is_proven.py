"""What goes to the proof, what it proves, and what a run says when it keeps nothing."""

import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import fake_run
import pytest
from fake_run import Machine
from rich.console import Console
from simulated_time import Clock

from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting, setting_key
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.report.result import print_result
from autotune.stats.sequential import Held
from autotune.strategies._observed import Observed
from autotune.tuning.document import result_document
from autotune.tuning.tune import Result


class Shy:
    """A strategy that tries what it is told to, and recommends the baseline."""

    wishes: ClassVar[list[dict[str, int | str]]] = []

    def __init__(self, problem: Problem) -> None:
        self.problem, self.told = problem, set[object]()

    def ask(self) -> Setting | None:
        asked = ({**self.problem.baseline, **wish} for wish in self.wishes)
        return next((s for s in asked if setting_key(s) not in self.told), None)

    def tell(self, trial: Trial) -> None:
        self.told.add(setting_key(trial.setting))

    def recommend(self) -> Recommendation:
        return Recommendation(self.problem.baseline, Estimate(1.0, 0.1), 1.0)

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        return Observed(self.problem).weigh(trials, setting, doubtful)


class Shaped(Machine):
    """What a phase shows is multiplied by what `shape` says of its setting."""

    def shape(self, _phase: str, _setting: Setting) -> dict[str, float]:
        return {}

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        times = self.shape(phase.name, self.setting)
        figures = {
            name: Estimate(each.value * times.get(name.partition(".")[2], 1.0), each.spread)
            for name, each in result.figures.items()
        }
        return dataclasses.replace(result, figures=figures)


def wishing(monkeypatch: pytest.MonkeyPatch, *wishes: dict[str, int | str]) -> None:
    monkeypatch.setattr(fake_run, "load_strategy", lambda _entry: Shy)
    monkeypatch.setattr(Shy, "wishes", list(wishes))


def printed(result: Result) -> str:
    out = io.StringIO()
    print_result(Console(file=out, width=80), result, None, "0 B of RAM (as before)")
    text = out.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines() if "autotune run" not in line), text
    assert result_document(result)["stopped"] == result.words.stopped
    return " ".join(text.split())


def test_what_looked_better_is_proven_whatever_the_strategy_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    result = Machine(tmp_path, monkeypatch).run("random")
    assert result.keep
    assert result.winner["stripe_cache_size"] == 2048
    # So large a gain is clear as soon as a drift would fall out.
    assert result.pairs == 2
    said = printed(result)
    assert "the throughputs of read, write and resync, which count the same" in said
    assert "holds" in said
    # Why it did not go on is said of what is kept, too.
    assert "The search ended: no other combination promises enough" in said


def test_what_does_not_bring_anything_is_not_in_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"stripe_cache_size": 2048, "scheduler": "none", "read_ahead_kb": 1536}
    wishing(monkeypatch, {"stripe_cache_size": 512}, {"scheduler": "none"}, both)
    machine = Machine(tmp_path, monkeypatch)
    result = machine.run("random")
    assert result.keep
    changed = {k: v for k, v in result.winner.items() if v != result.baseline[k]}
    assert changed == {"stripe_cache_size": 2048}
    # What was proven is the smaller profile, not what was tried.
    proofs = [t for t in machine.stored(1) if str(t[1]).startswith("confirm")]
    assert all(dict(t[2])["scheduler"] == "mq-deadline" for t in proofs)  # type: ignore[call-overload]


def test_when_time_is_short_what_there_is_is_proven_with_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048}, {"stripe_cache_size": 1024})
    # A trial takes 15 s: too little for another one and A B B A.
    result = Machine(tmp_path, monkeypatch).run("random", time_s=55)
    assert result.searched == 1
    assert result.keep
    assert "there was no time for another trial and a proof" in result.words.stopped


class Hurried(Shaped):
    """A larger cache costs latency: twice as much for four times the cache."""

    def shape(self, phase: str, setting: Setting) -> dict[str, float]:
        return {"p99": int(setting["stripe_cache_size"]) / 512 + 0.5} if phase == "resync" else {}


def test_a_run_that_keeps_nothing_says_what_came_nearest_and_what_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    result = Hurried(tmp_path, monkeypatch).run("random")
    assert not result.keep
    nearest = result.words.nearest
    assert nearest is not None
    assert nearest.point.setting["stripe_cache_size"] == 2048
    assert nearest.point.gain.value > 1.5
    said = printed(result)
    assert "Keep what you have: the combination that was tried looked better, but broke" in said
    assert "The best combination tried was stripe_cache_size 2048" in said
    assert "resync.p99 was " in said
    assert "The search ended: no other combination promises enough to be worth a trial" in said
    command = "autotune run md0 --workload FILE --strategy random --trials 9"
    assert f"{command} --p99-ceiling resync=" in said
    # And what the ceiling costs.
    assert "×2.8" in said
    assert ", with resync.p99 " in said


def test_a_run_that_tried_nothing_better_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"scheduler": "none"})
    result = Machine(tmp_path, monkeypatch).run("random")
    assert not result.keep
    said = printed(result)
    assert "the combination that was tried did not look better" in said
    assert "as it is ceiling" in said
    assert "after" not in said.partition("Keep")[0]
    assert result.words.command


class Growing(Shaped):
    """The kernel grows the cache: over a minute the original setting is so many times as fast."""

    catches_up = 2.0

    def shape(self, phase: str, setting: Setting) -> dict[str, float]:
        if phase == "write-long" and setting["stripe_cache_size"] == 256:
            return {"throughput": self.catches_up}
        return {}


def test_the_gain_of_the_first_seconds_and_that_of_a_minute_are_both_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    result = Growing(tmp_path, monkeypatch).run("random")
    assert result.keep
    long = result.long.figures["write.throughput"]
    assert long.ratio == pytest.approx(1.41, rel=0.1)
    said = printed(result)
    assert "write.throughput: first seconds ×2.8" in said
    assert "over 60 s of load ×1.3" in said or "over 60 s of load ×1.4" in said


def test_what_is_slower_after_a_minute_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    monkeypatch.setattr(Growing, "catches_up", 4.0)
    machine = Growing(tmp_path, monkeypatch)
    result = machine.run("random")
    assert not result.keep
    assert "faster in the first seconds, but after 60 s of load" in result.reason
    # It was looked at twice.
    roles = [role for _, role, *_ in machine.stored(1)]
    assert roles.count("long-winner") == roles.count("long-baseline") == 2


def test_the_next_proof_is_without_the_cache_that_failed_for_a_long_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Both(Growing):
        def shape(self, phase: str, setting: Setting) -> dict[str, float]:
            ahead = {"throughput": 1.5} if setting["read_ahead_kb"] == 1536 else {}
            return ahead if phase == "read" else super().shape(phase, setting)

    wishing(monkeypatch, {"stripe_cache_size": 2048, "read_ahead_kb": 1536})
    monkeypatch.setattr(Growing, "catches_up", 4.0)
    result = Both(tmp_path, monkeypatch).run("random")
    changed = {k: v for k, v in result.winner.items() if v != result.baseline[k]}
    assert changed == {"read_ahead_kb": 1536}
    ((_, decision),) = result.refused
    assert "faster in the first seconds" in decision.reason


def test_what_holds_a_ceiling_is_kept_however_slow_it_is_in_a_long_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Calm(Growing):
        def shape(self, phase: str, setting: Setting) -> dict[str, float]:
            small = setting["stripe_cache_size"] == 2048
            calm = {"p99": 0.5, "throughput": 0.2} if small else {}
            return calm if phase == "resync" else super().shape(phase, setting)

    wishing(monkeypatch, {"stripe_cache_size": 2048})
    monkeypatch.setattr(Growing, "catches_up", 4.0)
    ceilings = (Ceiling("resync", 15e6, None),)
    result = Calm(tmp_path, monkeypatch).run("random", ceilings=ceilings)
    assert result.keep
    assert result.winner["stripe_cache_size"] == 2048
    assert result.long.slower()


def test_a_proof_that_failed_is_told_once_and_not_as_the_nearest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    monkeypatch.setattr(Growing, "catches_up", 4.0)
    result = Growing(tmp_path, monkeypatch).run("random")
    assert result.words.nearest is None
    assert "may be noise" not in printed(result)


def test_it_is_looked_at_once_where_there_is_no_time_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    monkeypatch.setattr(Growing, "catches_up", 4.0)
    clock = Clock(monkeypatch)

    class Timed(Growing):
        def measure(self, phase: Phase, *rest: Any) -> PhaseResult:
            clock.now_s += 60.0 if phase.name == "write-long" else 0.0
            return super().measure(phase, *rest)

    machine = Timed(tmp_path, monkeypatch)
    result = machine.run("random", time_s=180)
    assert "faster in the first seconds, but after 60 s of load" in result.reason
    assert [role for _, role, *_ in machine.stored(1)].count("long-winner") == 1


def test_without_time_for_a_long_load_the_report_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    result = Growing(tmp_path, monkeypatch).run("random", time_s=120)
    assert result.keep
    assert "A long load was not measured: there was no time left" in printed(result)


@pytest.mark.parametrize("catches_up", [2.0, 2.8])
def test_where_long_loads_count_the_gain_has_to_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, catches_up: float
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    monkeypatch.setattr(Growing, "catches_up", catches_up)
    # Only writes count here.
    counts = fake_run.WORKLOAD.replace('name = "made-up"', 'name = "made-up"\ncounts = "long"')
    counts = counts.replace('weight = 1\nload = { rw = "read"', 'load = { rw = "read"')
    counts = counts.replace("weight = 1\ncheck", "check")
    monkeypatch.setattr(fake_run, "WORKLOAD", counts)
    result = Growing(tmp_path, monkeypatch).run("random")
    assert result.keep == (catches_up == 2.0)


class Noisy(Shaped):
    """Its p99 scatters by a third, and nothing moves it."""

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: Any) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        if phase.name != "resync":
            return result
        times = (0.7, 1.0, 1.4)[seed // 1000 % 3]
        p99 = result.figures["resync.p99"]
        figures = {**result.figures, "resync.p99": Estimate(p99.value * times, 0.05)}
        return dataclasses.replace(result, figures=figures)


def test_a_ceiling_that_is_a_formality_does_not_discard_a_large_gain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wishing(monkeypatch, {"stripe_cache_size": 2048})
    result = Noisy(tmp_path, monkeypatch).run("random")
    assert result.keep
    assert result.held["resync.p99"] in (Held.HOLDS, Held.NOT_SHOWN)
