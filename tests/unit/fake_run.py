"""A run on an array that is made up: nothing is measured, nothing is touched."""

import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest

from autotune.errors import StoppedError
from autotune.knobs import for_array, read_setting
from autotune.measure.fio_command import Target
from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase, parse_workload
from autotune.measure.write_budget import Written
from autotune.problem.course import Course
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.safety.journal import Journal
from autotune.safety.watch import Watch
from autotune.store import TrialRecord
from autotune.store.database import Store
from autotune.system.array import find_array
from autotune.system.stack import read_stack
from autotune.tuning import phase_runs, resume, trials, tune
from autotune.tuning.document import result_document
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.proven_profile import make_profile
from autotune.tuning.stored_problem import stored_problem
from autotune.tuning.strategies import find_strategy, load_strategy

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


PHASE_WRITES = 1 << 20


class Silent:
    def step(self, text: str) -> None: ...
    def notice(self, text: str) -> None: ...
    def progress(
        self, what: str, share: float, left_s: float | None, most_s: float | None = None
    ) -> None: ...
    def ceilings(self, limits_ns: Mapping[str, float]) -> None: ...
    def trial(self, record: TrialRecord, gain: Estimate | None) -> None: ...


class Machine:
    """An array whose figures follow from its setting and the trial's seed alone, and which stops
    the run at a given measurement."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        fake_sysfs.raid6(root)
        self.state = root / "state"
        self.array = find_array("md0", root)
        self.knobs = for_array(self.array)
        self.setting = read_setting(self.array, self.knobs)
        self.measured: list[tuple[int, str]] = []
        self.stop_at: int | None = None
        monkeypatch.setattr(trials, "apply", self.apply)
        monkeypatch.setattr(phase_runs, "measure", self.measure)
        # Nothing is really written here, so nothing reads as applied.
        monkeypatch.setattr(Watch, "look", lambda _self: None)

    def apply(self, _array: object, _knobs: object, setting: Setting, *_: object) -> Setting:
        self.setting = dict(setting)
        return self.setting

    def measure(self, phase: Phase, bench: Bench, seed: int, *_: object) -> PhaseResult:
        number = seed // 1000
        if number and len(self.measured) == self.stop_at:
            raise StoppedError("Stopped by a test.")
        wrote = PHASE_WRITES if phase.writes else 0
        if bench.written.left is not None and bench.written.left < wrote:
            raise bench.written.used_up()
        bench.written.add(wrote)
        # The warm-up is no trial.
        if number:
            self.measured.append((number, phase.name))
        rng = random.Random(f"{seed} {phase.name}")
        rate = 1e8 * math.exp(rng.gauss(0, 0.01))
        if phase.name != "read":
            rate *= math.sqrt(int(self.setting["stripe_cache_size"]) / 256)
        figures = {f"{phase.name}.throughput": Estimate(rate, 0.01)}
        if phase.probe:
            figures[f"{phase.name}.p99"] = Estimate(2e7 * math.exp(rng.gauss(0, 0.01)), 0.02)
        too_few = tuple(f.name for f in phase.figures() if f.name not in figures)
        course = Course(
            (1.0,) * 4,
            (rate,) * 4,
            (30_000_000,) * 4 if phase.probe else (),
            (256, 300, 350, 390) if phase.name == "write" else (),
            {ns * 1_000_000: 40 - ns for ns in range(5, 35)} if phase.probe else {},
        )
        return PhaseResult(phase.name, figures, 5.0, True, too_few, wrote, course=course)

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

    def bench(self, written: Written) -> Bench:
        target = Target(Path("/dev/md0"), 1 << 30)
        journal = Journal.load(_journal(self.state))
        return Bench(
            *("md0", target, target, journal, lambda: None, lambda: None),
            *(lambda _p, _s: None, None, written),
        )

    def run(
        self, strategy: str, stop_at: int | None = None, again: bool = False, **changes: Any
    ) -> tune.Result:
        """As `autotune.tuning.run.run` does, without touching anything."""
        self.stop_at, self.measured = stop_at, []
        preparation = self.preparation(strategy, **changes)
        document = stored_problem(preparation, preparation.figures).document()
        store = Store(self.state)
        earlier: list[TrialRecord] = []
        before = 0
        if again:
            number, earlier = self.resume(strategy, **changes)
        else:
            number = store.start_run("u", "/dev/md0", "print", document)
        if again:
            before = store.run(number).problem["written_bytes"]
        written = Written(
            preparation.options.write_budget,
            before,
            lambda total: store.update_problem(number, {**document, "written_bytes": total}),
        )
        watch = Watch(self.array, self.knobs)
        done = trials.Trials(preparation, self.bench(written), watch, store, number, Silent())
        done.replay(earlier)
        searches = preparation.options.given is None
        factory = load_strategy(find_strategy(strategy)) if searches else None
        result, problem = tune.tune(preparation, done, factory, Silent())
        profile = make_profile(preparation, result).model_dump(mode="json") if result.keep else None
        final = stored_problem(preparation, problem.figures, written.total)
        store.update_problem(number, final.document())
        store.finish_run(number, "done", result.reason, profile, result_document(result))
        return result

    def resume(
        self, strategy: str, uuid: str = "u", fingerprint: str = "print", **changes: Any
    ) -> tuple[int, list[TrialRecord]]:
        preparation = self.preparation(strategy, **changes)
        problem = stored_problem(preparation, preparation.figures)
        return resume.to_resume(Store(self.state), uuid, fingerprint, problem)

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
