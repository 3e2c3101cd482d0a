"""A run that keeps nothing says what was measured in turn, what prevented it, whose ceiling it was,
and what else looked better, in the terminal as in the report."""

import dataclasses
import io
from pathlib import Path

import pytest
from fake_run import Machine
from rich.console import Console
from stored_reports import asked, documents

from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase
from autotune.problem.ceilings import Ceiling
from autotune.problem.figure import Estimate
from autotune.problem.setting import setting_key
from autotune.report import sentences
from autotune.report.result import print_result
from autotune.results.study import study_of
from autotune.store.database import Store
from autotune.tuning.tune import Result


class Nervous(Machine):
    """Proofs show three times the p99 that the search showed."""

    searched = 0

    def measure(self, phase: Phase, bench: Bench, seed: int, *rest: object) -> PhaseResult:
        result = super().measure(phase, bench, seed, *rest)
        if seed // 1000 <= self.searched or self.setting["stripe_cache_size"] == 256:
            return result
        figures = {
            name: Estimate(e.value * 3, e.spread) if name.endswith("p99") else e
            for name, e in result.figures.items()
        }
        return dataclasses.replace(result, figures=figures)


@pytest.mark.parametrize("ceilings", [(), (Ceiling("resync", 30e6, None),)])
def test_what_was_measured_in_turn_and_why_it_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ceilings: tuple[Ceiling, ...]
) -> None:
    machine = Nervous(tmp_path, monkeypatch)
    # All trials but the two of the original settings and the nine of the search are proofs.
    machine.searched = 11
    result = machine.run("recipe", ceilings=ceilings)
    assert not result.keep
    assert result.reason.startswith(
        "the next best combination broke the ceiling for resync.p99 when measured in turn: "
    )
    allowed = "30.0 ms" if ceilings else "×1.10"
    assert result.reason.endswith(f" where {allowed} is allowed")
    out = io.StringIO()
    print_result(
        Console(file=out, width=80, color_system=None), result, None, "0 B of RAM (as before)"
    )
    said = " ".join(out.getvalue().split())
    measured = f"Measured in turn, and not kept: stripe_cache_size {proposed(result)}"
    assert measured in said
    # It is told once, as what was measured in turn.
    assert f"in the search was stripe_cache_size {proposed(result)}:" not in said

    text = " ".join(asked(machine.state, "report", "1", "--format", "text").split())
    assert f"Keep what you have: {result.reason}." in text
    assert measured in text
    assert ("is autotune's own, since none was asked for: ×1.10 of" in text) == (not ceilings)
    (shown,) = documents(machine.state, "1")
    # What failed before that, too, with what its own proof said.
    assert result.refused
    earlier = shown["in_turn"][:-1]
    for (_, decision), each in zip(result.refused, earlier, strict=True):
        why = f"Also measured in turn, and not kept: {each['setting']}. Why: {decision.reason}."
        assert why in said
        assert why in text
        assert decision.verdict is not None
        overall = decision.verdict.overall
        gain = {"value": overall.ratio, "low": overall.low, "high": overall.high}
        assert each["gain"] == pytest.approx(gain)
    store = Store(machine.state)
    known = study_of(store.run(1), store.trials(1)).in_turn
    for setting, decision in result.refused:
        assert decision.verdict is not None
        found, overall = known[setting_key(setting)], decision.verdict.overall
        assert found.gain.interval == pytest.approx((overall.low, overall.high))
        tail = decision.verdict.figures["resync.p99"]
        assert found.changes["resync.p99"]["high"] == tail.high
    last = known[setting_key(result.proposed)]
    assert result.verdict is not None
    assert last.gain.value == pytest.approx(result.verdict.overall.ratio)
    assert not any("with the new ones" in line for line in sentences.costs(shown))


def proposed(result: Result) -> object:
    return result.proposed["stripe_cache_size"]
