"""A run in a process of its own that something goes wrong with at a chosen stage."""

import contextlib
import faulthandler
import functools
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from autotune.cli.main import main

# For every child at once: in the guest an import takes seconds.
from autotune.measure import phase, settling
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.strategy import Problem, Recommendation, Weighed
from autotune.problem.trial import Trial
from autotune.safety import restore
from autotune.safety.watch import Watch
from autotune.stats.batch_means import student_t
from autotune.system import sysfs
from autotune.tuning.phase_runs import PhaseRuns
from autotune.tuning.trials import Trials

student_t(3)

STAGES = ("baseline", "apply", "write", "resync", "confirm", "restore")
WELL_INTO_S = 0.7


class OneSetting:
    """A strategy that tries a setting in which every knob differs, and recommends it or not."""

    def __init__(self, problem: Problem, recommends: bool) -> None:
        self._baseline, self._recommends = problem.baseline, recommends
        rng, baseline = random.Random(0), self._baseline
        self._asked = False
        while True:
            self._setting: Setting = {
                d.knob: rng.choice([c for c in d.choices if c != baseline[d.knob]] or d.choices)
                for d in problem.dimensions
            }
            if problem.allowed(self._setting):
                break

    def ask(self) -> Setting | None:
        if self._asked:
            return None
        self._asked = True
        return self._setting

    def tell(self, trial: Trial) -> None: ...

    def recommend(self) -> Recommendation:
        setting = self._setting if self._recommends else self._baseline
        return Recommendation(setting, Estimate(1.1, 0.1), 1.0)

    def weigh(self, trials: Sequence[Trial], setting: Setting, doubtful: bool = False) -> Weighed:
        # Nothing goes back, whether it brings anything or not.
        return Weighed((), 0.0)


@dataclass
class Stage:
    """Where the run stands; once it is at `wanted`, `provoke` is called."""

    wanted: str
    provoke: Callable[[], None]
    reached: Path
    now: str = ""
    since_s: float = 0.0

    def enter(self, name: str) -> None:
        self.now, self.since_s = name, time.monotonic()

    def here(self, after_s: float = 0.0) -> None:
        """Something is going on at the present stage, since a while."""
        if self.now != self.wanted or self.reached.exists():
            return
        if time.monotonic() - self.since_s >= after_s:
            self.reached.touch()
            self.provoke()


@contextlib.contextmanager
def told(stage: Stage) -> Iterator[None]:
    """Let the stage hear where the run of this process stands."""
    run, look, store = Trials.run, Watch.__call__, sysfs.write
    measured, put_back = PhaseRuns.run, restore.put_back_file
    role = ""

    # Without a winner to confirm, the restore comes a minute sooner.
    strategy = functools.partial(OneSetting, recommends=stage.wanted == "confirm")

    def trial(self: Trials, its_role: str, *rest: Any, **more: Any) -> Any:
        nonlocal role
        role = its_role
        stage.enter("apply" if role == "search" else "")
        return run(self, role, *rest, **more)

    def in_a_phase(self: PhaseRuns, what: Any, *rest: Any) -> Any:
        stage.enter(what.name if role == "search" else role.partition("-")[0])
        return measured(self, what, *rest)

    def looking(self: Watch) -> None:
        if stage.now not in ("apply", "restore"):
            stage.here(WELL_INTO_S)
        look(self)

    def storing(path: Path, text: str, *rest: float) -> None:
        store(path, text, *rest)
        if stage.now == "apply":
            stage.here()

    def restoring(*rest: Any) -> bool:
        done = put_back(*rest)
        if stage.now != "restore":
            stage.enter("restore")
        stage.here()
        return done

    with (
        mock.patch.object(Trials, "run", trial),
        mock.patch.object(PhaseRuns, "run", in_a_phase),
        mock.patch.object(Watch, "__call__", looking),
        mock.patch.object(sysfs, "write", storing),
        mock.patch.object(restore, "put_back_file", restoring),
        mock.patch.object(settling, "CHECK_RAMP_S", 0.5),
        mock.patch.object(settling, "SETTLE_S", 0.5),
        mock.patch.object(phase, "SILENCE_S", 10.0),
        mock.patch("autotune.tuning.tune.BASELINE_TRIALS", 1),
        # As the baseline, but twelve minutes of the matrix.
        mock.patch.object(Trials, "warm_up"),
        mock.patch("autotune.tuning.run.load_strategy", return_value=strategy),
    ):
        yield


def start(words: list[str], stage: Stage, output: Path) -> int:
    """Fork, since the guest takes seconds to start Python; return the child's process id."""
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        with output.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1)
        faulthandler.register(signal.SIGUSR1, sys.stderr, all_threads=True)
        os.setsid()
        with mock.patch.object(sys, "argv", ["autotune", *words]), told(stage):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)
