"""What a run decides, on an array that is made up."""

import dataclasses
from pathlib import Path

import pytest
from fake_run import Machine

from autotune.ceilings import Ceiling
from autotune.measure import Bench, PhaseResult
from autotune.search import Estimate
from autotune.workload import Phase


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
