"""A run that was cut and goes on ends as one that was not cut; another run is refused."""

import itertools
import json
import math
import random
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest

from autotune import recorded, resume, trials, tuner
from autotune.array import find_array
from autotune.ceilings import Ceiling
from autotune.errors import RefusalError, StoppedError
from autotune.fio import Target
from autotune.journal import Journal
from autotune.knobs import for_array, read_setting
from autotune.measure import Bench, PhaseResult
from autotune.prepare import Options, Preparation
from autotune.run import find_strategy, load_strategy
from autotune.search import Estimate, Setting
from autotune.stack import read_stack
from autotune.store import TrialRecord
from autotune.store.database import Store
from autotune.watch import Watch
from autotune.workload import Phase, parse_workload

WORKLOAD = """
name = "made-up"
[[phases]]
name = "read"
weight = 1
load = { rw = "read", block_kib = 1024, buffered = true }
[[phases]]
name = "write"
weight = 1
load = { rw = "write", block_kib = 1024, buffered = true }
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 60 }
"""


class Silent:
    def step(self, text: str) -> None: ...
    def notice(self, text: str) -> None: ...
    def progress(self, what: str, share: float, left_s: float | None) -> None: ...
    def trial(self, record: TrialRecord, gain: Estimate | None) -> None: ...


class Machine:
    """An array whose figures follow from its setting and the trial's seed alone, and which stops
    the run at a given measurement."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_sysfs.raid6(root)
        self.state = root / "state"
        self.array = find_array("md0", root)
        self.knobs = for_array(self.array)
        self.setting: Setting = {}
        self.measured: list[tuple[int, str]] = []
        self.stop_at: int | None = None
        monkeypatch.setattr(trials, "apply", self.apply)
        monkeypatch.setattr(trials, "measure", self.measure)
        # Nothing is really written here, so nothing reads as applied.
        monkeypatch.setattr(Watch, "look", lambda _self: None)

    def apply(self, _array: object, _knobs: object, setting: Setting, *_: object) -> Setting:
        self.setting = dict(setting)
        return self.setting

    def measure(self, phase: Phase, _bench: object, seed: int, *_: object) -> PhaseResult:
        if len(self.measured) == self.stop_at:
            raise StoppedError("Stopped by a test.")
        self.measured.append((seed // 1000, phase.name))
        rng = random.Random(f"{seed} {phase.name}")
        rate = 1e8 * math.exp(rng.gauss(0, 0.01))
        if phase.name != "read":
            rate *= math.sqrt(int(self.setting["stripe_cache_size"]) / 256)
        figures = {f"{phase.name}.throughput": Estimate(rate, 0.01)}
        if phase.probe:
            figures[f"{phase.name}.p99"] = Estimate(2e7 * math.exp(rng.gauss(0, 0.01)), 0.02)
        too_few = tuple(f.name for f in phase.figures() if f.name not in figures)
        return PhaseResult(phase.name, figures, 5.0, True, too_few, 4096)

    def preparation(self, strategy: str, **changes: Any) -> Preparation:
        workload = parse_workload(WORKLOAD, "test")
        options = Options("md0", workload, strategy, **{"trials": 9, **changes})
        return Preparation(
            options=options,
            array=self.array,
            stack=read_stack(self.array),
            findings=(),
            knobs=self.knobs,
            baseline=read_setting(self.array, self.knobs),
            choices={
                "stripe_cache_size": (256, 512, 1024, 2048),
                "sync_speed_min": (1000, 8000),
                "sync_speed_max": (50000, 200000),
                "read_ahead_kb": (384, 768, 1536),
                "scheduler": ("mq-deadline", "none"),
            },
            hints=(),
            ram_budget_bytes=1 << 30,
            phases=workload.phases,
            left_out=(),
            scratch=None,
            careful=False,
            figures=tuple(workload.figures),
        )

    def run(self, strategy: str, stop_at: int | None = None, again: bool = False) -> tuner.Result:
        """As `autotune.run.run` does, without touching anything."""
        self.stop_at, self.measured = stop_at, []
        preparation = self.preparation(strategy)
        document = recorded.document(preparation, preparation.figures)
        store = Store(self.state)
        earlier: list[TrialRecord] = []
        if again:
            number, earlier = self.resume(strategy)
        else:
            number = store.start_run("u", "/dev/md0", "print", document)
        target = Target(Path("/dev/md0"), 1 << 30)
        journal = Journal.load(_journal(self.state))
        bench = Bench("md0", target, target, journal, *[lambda: None] * 2, lambda _p, _s: None)
        watch = Watch(self.array, self.knobs)
        done = trials.Trials(preparation, bench, watch, store, number, Silent())
        done.replay(earlier)
        result, _ = tuner.tune(preparation, done, load_strategy(find_strategy(strategy)), Silent())
        store.finish_run(number, "done", result.reason)
        return result

    def resume(
        self, strategy: str, uuid: str = "u", fingerprint: str = "print", **changes: Any
    ) -> tuple[int, list[TrialRecord]]:
        preparation = self.preparation(strategy, **changes)
        document = recorded.document(preparation, preparation.figures)
        return resume.to_resume(Store(self.state), uuid, fingerprint, document)

    def stored(self, number: int) -> list[tuple[object, ...]]:
        return [
            (t.number, t.role, t.requested, t.figures, t.measured)
            for t in Store(self.state).trials(number)
        ]


def _journal(state: Path) -> Path:
    state.mkdir(exist_ok=True)
    path = state / "journal.jsonl"
    head = {"uuid": "u", "device": "md0", "boot": "b", "pid": 1, "originals": {}}
    path.write_text(json.dumps(head) + "\n")
    return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


@pytest.mark.parametrize("strategy", ["random", "recipe"])
@pytest.mark.parametrize("stop_at", [0, 1, 4, 7, 12, 16])
def test_a_run_that_was_cut_ends_as_if_it_had_not_been(
    machine: Machine, strategy: str, stop_at: int
) -> None:
    whole = machine.run(strategy)
    expected = machine.stored(1)
    with pytest.raises(StoppedError):
        machine.run(strategy, stop_at)
    before = machine.stored(2)
    again = machine.run(strategy, again=True)
    assert machine.stored(2) == expected
    assert machine.stored(2)[: len(before)] == before
    assert (again.winner, again.keep) == (whole.winner, whole.keep)
    assert again.trials == whole.trials
    assert again.unsupported == whole.unsupported


def test_no_stored_trial_is_measured_twice(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 13)
    kept = {(number, phase) for number, *_, phases in machine.stored(1) for phase in phases}
    measured = machine.measured
    machine.run("random", again=True)
    twice = set(measured) & set(machine.measured)
    assert not twice & kept
    # Only the trial that was cut, if it had got somewhere.
    assert {number for number, _ in twice} <= {len({n for n, _ in kept}) + 1}


def test_a_baseline_that_came_back_and_was_cut_is_measured_again(machine: Machine) -> None:
    machine.run("random")
    stored = machine.stored(1)
    third = [number for number, role, *_ in stored if role == "baseline"][2]
    stop_at = sum(len(phases) for number, *_, phases in stored if number < third) + 1
    with pytest.raises(StoppedError):
        machine.run("random", stop_at)
    machine.run("random", again=True)
    assert machine.stored(2) == stored


def test_a_confirmation_that_was_cut_is_measured_from_its_start(machine: Machine) -> None:
    machine.run("recipe")
    roles = [role for _, role, *_ in machine.stored(1)]
    inside = itertools.accumulate(len(phases) for *_, phases in machine.stored(1))
    stop_at = list(inside)[-2]
    with pytest.raises(StoppedError):
        machine.run("recipe", stop_at)
    result = machine.run("recipe", again=True)
    again = [role for _, role, *_ in machine.stored(2)]
    assert again == roles[:-1] + roles[-4:]
    assert result.keep


@pytest.mark.parametrize(
    ("strategy", "changes", "words"),
    [
        ("random", {"seed": 4}, "the seed was 0 and is 4 now"),
        ("random", {"trials": 10}, "the number of trials was 9 and is 10 now"),
        ("random", {"ceilings": (Ceiling(None, 5e7, None),)}, "the ceilings changed"),
        ("grid", {}, "the strategy was random and is grid now"),
    ],
)
def test_other_options_are_refused_with_what_differs(
    machine: Machine, strategy: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    with pytest.raises(RefusalError, match=words):
        machine.resume(strategy, **changes)


def test_settings_that_were_changed_since_are_refused(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    (machine.array.md / "stripe_cache_size").write_text("512\n")
    with pytest.raises(RefusalError, match="stripe_cache_size was 256 when it started and is 512"):
        machine.resume("random")


def test_another_array_or_kernel_is_refused(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    with pytest.raises(RefusalError, match="kernel changed"):
        machine.resume("random", fingerprint="other")
    with pytest.raises(RefusalError, match="nothing to resume"):
        machine.resume("random", uuid="another array")


def test_more_time_may_be_given(machine: Machine) -> None:
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    number, trials_done = machine.resume("random", time_s=9999.0)
    assert (number, len(trials_done)) == (1, 2)


def test_a_run_that_ended_is_not_resumed_and_a_killed_one_is_hinted_at(machine: Machine) -> None:
    machine.run("random")
    store = Store(machine.state)
    assert resume.unfinished(store.runs("u")) is None
    assert resume.interrupted(store.runs("u")) is None
    with pytest.raises(StoppedError):
        machine.run("random", 7)
    # As after `kill -9`: nobody noted the end.
    cut = resume.interrupted(store.runs("u"))
    assert cut is not None
    assert (cut.id, cut.state) == (2, "running")


def test_reopening_forgets_the_end(machine: Machine) -> None:
    store = Store(machine.state)
    number = store.start_run("u", "/dev/md0", "print", {})
    store.finish_run(number, "interrupted", "Stopped by SIGINT")
    store.reopen_run(number)
    again = store.run(number)
    assert (again.state, again.outcome, again.ended) == ("running", "", None)
