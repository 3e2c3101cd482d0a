"""A whole search and its proof, on made-up arrays of which the best shape is known."""

import contextlib
import math
import random
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from fake_run import Silent

from autotune.design import trials as trials_module
from autotune.design.proof import Proof, prove
from autotune.design.search import Search
from autotune.design.shape import Shape
from autotune.design.space import Space, space
from autotune.design.trials import BASELINE, Trials, by_disk
from autotune.errors import InfeasibleError, MeasurementError, RefusalError
from autotune.measure.phase import PhaseResult
from autotune.measure.workload import Phase, Workload, load_workload
from autotune.measure.write_budget import Written
from autotune.problem.figure import Estimate
from autotune.problem.setting import setting_key
from autotune.problem.trial import Status
from autotune.tuning.strategies import find_strategy, load_strategy

WORKLOAD = Workload.model_validate(
    {
        "name": "made-up",
        "phases": [
            {"name": "read", "weight": 1, "load": {"rw": "read", "block_kib": 1024}},
            {
                "name": "write",
                "weight": 1,
                "load": {"rw": "write", "block_kib": 1024},
                "probe": {"rate_iops": 50},
            },
        ],
    }
)
LEVELS = {"raid6": 1.0, "raid5": 1.2, "raid10": 1.1}
LAYOUTS = {"left-symmetric": 1.0, "left-asymmetric": 0.9, "n2": 1.0, "f2": 1.4, "o2": 1.2}
NOISE = 0.02


def speed(shape: Shape, phase: str) -> float:
    """Best at 128 KiB; far copies read fast and write slowly; a PPL costs writes."""
    away = abs(math.log2(shape.chunk_kib / 128))
    factor = LEVELS[shape.level] * LAYOUTS[shape.layout] ** (1 if phase == "read" else -0.7)
    if phase == "write" and shape.consistency == "ppl":
        factor *= 0.7
    return 1e8 * factor * 0.9**away


def score(shape: Shape) -> float:
    return math.sqrt(speed(shape, "read") * speed(shape, "write"))


class MadeUp:
    """Slices of disks that are not there; `made` remembers what was made."""

    def __init__(self, lacking: str = "") -> None:
        self.written = Written()
        self.workspace = SimpleNamespace(disks=range(5))
        self.progress: Any = None
        self.lacking = lacking
        self.shapes: list[Shape] = []

    @contextlib.contextmanager
    def made(self, shape: Shape) -> Iterator[Shape]:
        if shape.consistency == self.lacking:
            raise InfeasibleError("The kernel does not have it.")
        self.shapes.append(shape)
        yield shape


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Shape]]:
    """What was measured; each phase takes 10 s that do not pass."""
    seen: list[tuple[str, Shape]] = []
    clock = [1000.0]

    def measure(phase: Phase, bench: Any, seed: int, *_how: Any) -> PhaseResult:
        rng = random.Random(f"{seed}:{phase.name}")
        clock[0] += 10.0
        seen.append((phase.name, bench))
        value = speed(bench, phase.name) * math.exp(rng.gauss(0, NOISE))
        figures = {f"{phase.name}.throughput": Estimate(value, NOISE)}
        if phase.probe:
            p99 = 2e7 * math.exp(rng.gauss(0, NOISE))
            figures[f"{phase.name}.p99"] = Estimate(p99, NOISE)
        return PhaseResult(phase.name, figures, 10.0, True)

    monkeypatch.setattr(trials_module, "measure", measure)
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    return seen


def designed(
    among: Space, minutes: float, slices: MadeUp, seed: int = 0
) -> tuple[Trials, Search, Proof]:
    reporter, phases = Silent(), WORKLOAD.phases
    deadline = time.monotonic() + minutes * 60
    trials = Trials(slices, phases, reporter, deadline, seed)  # type: ignore[arg-type]
    search = Search(among, trials, phases, seed)
    search.measure_default(())
    search.run(load_strategy(find_strategy("bayes")))
    return trials, search, prove(trials, among.default, search.finalists(), (), reporter)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_shape_is_found_and_proven_in_time(
    measured: list[tuple[str, Shape]], seed: int
) -> None:
    among = space(5)
    began = time.monotonic()
    trials, _, proof = designed(among, 30, MadeUp(), seed)
    best = max(among.shapes, key=score)
    assert score(proof.winner.shape) >= 0.97 * score(best)
    assert proof.winner.gain is not None
    assert time.monotonic() - began < 30 * 60
    # Every level was tried, and the default came back.
    assert {Shape.of(r.requested).level for r in trials.records} == set(among.levels)
    assert sum(r.role == BASELINE for r in trials.records) > 2
    assert proof.finalists[0].shape == among.default
    assert proof.rounds >= 2


def test_only_what_a_consistency_can_move_is_measured_again(
    measured: list[tuple[str, Shape]],
) -> None:
    trials, _, _ = designed(space(5, ["raid5"]), 20, MadeUp())
    for record in trials.records:
        if record.role == "search" and record.status is Status.COMPLETE:
            assert "write" in record.measured
            assert set(record.figures) == {"read.throughput", "write.throughput", "write.p99"}
    # In turn, everything is.
    assert all(r.measured == ("read", "write") for r in trials.records if r.role == "proof")


def test_what_the_kernel_does_not_make_is_passed_over(
    measured: list[tuple[str, Shape]],
) -> None:
    slices = MadeUp(lacking="ppl")
    trials, _, proof = designed(space(5, ["raid5"]), 20, slices)
    assert not any(shape.consistency == "ppl" for shape in slices.shapes)
    refused = [r for r in trials.records if r.status is Status.INFEASIBLE]
    # Each is asked for once at most.
    assert len({setting_key(r.requested) for r in refused}) == len(refused)
    assert proof.winner.shape.chunk_kib in (64, 128, 256)


def test_a_shape_that_cannot_be_measured_is_passed_over_and_two_in_a_row_end_it(
    measured: list[tuple[str, Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if fio hung on far copies, and on everything later."""
    measure, hanging = trials_module.measure, ["f2"]

    def hang(phase: Phase, bench: Any, *how: Any) -> PhaseResult:
        if bench.layout in hanging:
            raise MeasurementError("fio has said nothing.")
        return measure(phase, bench, *how)

    monkeypatch.setattr(trials_module, "measure", hang)
    among = space(5, ["raid10"])
    trials = Trials(MadeUp(), WORKLOAD.phases, Silent(), time.monotonic() + 3600)  # type: ignore[arg-type]
    search = Search(among, trials, WORKLOAD.phases, 0)
    search.measure_default(())
    far, near = Shape("raid10", "f2", 64, "bitmap"), Shape("raid10", "n2", 64, "bitmap")
    for shape, status in (
        (far, Status.FAILED),
        (near, Status.COMPLETE),
        (far, Status.FAILED),
    ):
        assert trials.run("search", shape).status is status
    assert "fio has said nothing." in trials.records[-1].reason
    hanging.append("n2")
    with pytest.raises(MeasurementError):
        trials.run("search", near)


def test_a_finalist_that_could_not_be_measured_is_not_measured_in_turn_again(
    measured: list[tuple[str, Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = trials_module.measure

    def hang(phase: Phase, bench: Any, *how: Any) -> PhaseResult:
        if bench.layout == "f2":
            raise MeasurementError("fio has said nothing.")
        return measure(phase, bench, *how)

    # So that two rounds are not clear.
    monkeypatch.setitem(globals(), "NOISE", 0.05)
    monkeypatch.setattr(trials_module, "measure", hang)
    among = space(5, ["raid10"])
    trials = Trials(MadeUp(), WORKLOAD.phases, Silent(), time.monotonic() + 3600)  # type: ignore[arg-type]
    Search(among, trials, WORKLOAD.phases, 0).measure_default(())
    far, near = Shape("raid10", "f2", 64, "bitmap"), Shape("raid10", "n2", 64, "bitmap")
    proof = prove(trials, among.default, [far, near], (), Silent())
    assert proof.rounds > 2
    assert [Shape.of(r.requested) for r in trials.records].count(far) == 1
    assert {each.shape for each in proof.finalists} == {among.default, near}


def test_where_nothing_is_better_mdadms_default_is_the_answer(
    measured: list[tuple[str, Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(globals(), "speed", lambda _shape, _phase: 1e8)
    among = space(5, ["raid10"])
    _, _, proof = designed(among, 20, MadeUp())
    assert proof.winner.shape == among.default
    assert proof.winner.gain is None


def test_too_little_time_is_refused_with_what_it_takes(
    measured: list[tuple[str, Shape]],
) -> None:
    with pytest.raises(RefusalError, match=r"allow \d+ min more"):
        designed(space(5), 1, MadeUp())


def test_the_rate_of_a_check_is_that_of_each_disk_on_every_level() -> None:
    phase = load_workload("streaming").phases[-1]
    shown = {"resync.throughput": Estimate(100e6, 0.02)}
    mirrors = by_disk(phase, Shape("raid10", "n2", 64, "bitmap"), 5, shown)
    # md counts bytes of the array, each of which two of the five disks have.
    assert mirrors == {"resync.throughput": Estimate(40e6, 0.02)}
    assert by_disk(phase, Shape("raid6", "left-symmetric", 64, "bitmap"), 5, shown) == shown
    load = WORKLOAD.phases[0]
    shown = {"read.throughput": Estimate(100e6, 0.02)}
    assert by_disk(load, Shape("raid10", "n2", 64, "bitmap"), 5, shown) == shown
