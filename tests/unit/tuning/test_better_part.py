"""What is left of a setting that a proof did not show to be better."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_run import Machine

from autotune.measure.workload import Phase, Probe
from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting, Value
from autotune.problem.strategy import KnobShare
from autotune.stats.verdict import Comparison, Conclusion, Verdict
from autotune.tuning.better_part import better_part, needed_part
from autotune.tuning.relevance import figures_moved

BEFORE: Setting = {"read_ahead_kb": 512, "sync_speed_max": 200_000, "scheduler": "none"}
AFTER: Setting = {"read_ahead_kb": 8192, "sync_speed_max": 500_000, "scheduler": "none"}


def compared(ratio: float, half: float) -> Comparison:
    return Comparison(ratio, ratio / (1 + half), ratio * (1 + half), Conclusion.SAME)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def part(machine: Machine, after: Setting, **shown: Comparison) -> Setting | None:
    names = {
        "read": "read.throughput",
        "sync": "resync.throughput",
        "p99": "resync.p99",
        "idle": "idle.p99",
    }
    phases = [
        Phase(name="idle", weight=0, probe=Probe(rate_iops=60)),
        *machine.preparation("random").phases,
    ]
    verdict = Verdict(compared(1.1, 0.2), {names[k]: each for k, each in shown.items()})
    figures = [
        Figure("read.throughput", "read", "throughput", 1.0),
        Figure("resync.throughput", "resync", "throughput", 1.0),
        Figure("resync.p99", "resync", "latency", ratio=1.1),
        Figure("idle.p99", "idle", "latency", ratio=1.1),
    ]
    moves = {knob.name: figures_moved(knob, phases) for knob in machine.knobs}
    return better_part(moves, figures, after, BEFORE, verdict)


def test_a_change_that_moves_only_what_looked_better_is_left(machine: Machine) -> None:
    found = part(machine, AFTER, read=compared(1.28, 0.2), sync=compared(1.05, 0.3))
    assert found == {**BEFORE, "read_ahead_kb": 8192}


def test_nothing_is_left_where_nothing_or_all_of_it_looked_better(machine: Machine) -> None:
    assert part(machine, AFTER, read=compared(1.02, 0.2), sync=compared(0.9, 0.3)) is None
    assert part(machine, AFTER, read=compared(1.3, 0.2), sync=compared(1.3, 0.2)) is None


def test_a_change_that_also_moves_what_did_not_look_better_is_left_out(machine: Machine) -> None:
    after = {**AFTER, "scheduler": "kyber"}
    found = part(machine, after, read=compared(1.28, 0.2), sync=compared(0.9, 0.3))
    assert found == {**BEFORE, "read_ahead_kb": 8192}


def test_what_looked_worse_than_its_ceiling_is_left_out(machine: Machine) -> None:
    sides = {"read": compared(1.3, 0.2), "sync": compared(1.3, 0.2)}
    found = part(machine, AFTER, **sides, p99=compared(1.4, 0.3))
    assert found == {**BEFORE, "read_ahead_kb": 8192}
    assert part(machine, AFTER, **sides, p99=compared(1.05, 0.3)) is None


def needed(
    better: Sequence[str],
    probable: Sequence[str] = (),
    sure: Sequence[str] = (),
    **changes: Value,
) -> Setting | None:
    """What is left of all changes of `AFTER` and these; the first two knobs move what is theirs
    alone, the scheduler moves both."""
    moves = {
        "read_ahead_kb": ("read.throughput",),
        "sync_speed_max": ("resync.throughput", "resync.p99"),
        "scheduler": ("read.throughput", "resync.throughput", "resync.p99"),
    }
    shares = [KnobShare(knob, 0, 1, Estimate(1.1, 0.02), True) for knob in sure]
    return needed_part(moves, {**AFTER, **changes}, BEFORE, better, probable, shares)


def test_a_change_stays_if_something_that_it_moves_is_better() -> None:
    assert needed(["read.throughput"]) == {**BEFORE, "read_ahead_kb": 8192}
    assert needed(["resync.p99"]) == {**BEFORE, "sync_speed_max": 500_000}
    assert needed(["read.throughput", "resync.p99"]) is None
    assert needed([]) is None


def test_a_change_of_which_the_models_are_sure_stays_if_its_proof_speaks_for_it() -> None:
    read, sync = ["read.throughput"], ["resync.throughput"]
    assert needed(read, probable=sync, sure=["sync_speed_max"]) is None
    assert needed([], sync, sure=["sync_speed_max"]) == {**BEFORE, "sync_speed_max": 500_000}
    # As on an array whose syncs were 1 % faster, with twice the response time beside them.
    assert needed(read, sure=["sync_speed_max"]) == {**BEFORE, "read_ahead_kb": 8192}
    assert needed(read, probable=sync) == {**BEFORE, "read_ahead_kb": 8192}


def test_what_was_measured_with_a_change_that_stays_alone_stays_with_it() -> None:
    assert needed(["read.throughput"], scheduler="bfq") is None
