"""python -m benchmarks.measure.savings DEVICE: what ending hopeless trials early and leaving out
phases that nothing moved save, and whether the answer stays the same.

Two runs with the same seed and number of trials, one with both and one with neither.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from rich.console import Console

from autotune.measure.phase import never_clear, never_hopeless
from autotune.measure.workload import load_workload
from autotune.problem.ceilings import parse_ceiling
from autotune.problem.setting import show_setting
from autotune.report.live import LiveReporter
from autotune.store.database import Store
from autotune.tuning import phase_runs
from autotune.tuning.early_stop import EarlyEnd
from autotune.tuning.preparation import Options
from autotune.tuning.run import Done, run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure.savings")
    parser.add_argument("device")
    parser.add_argument("--workload", default="quick")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--p99-ceiling", default="resync=1s")
    parser.add_argument("--strategy", default="bayes")
    parser.add_argument("--destructive", help="name the device again; all data on it is lost")
    chosen = parser.parse_args()
    options = Options(
        chosen.device,
        load_workload(chosen.workload),
        strategy=chosen.strategy,
        trials=chosen.trials,
        time_s=7200,
        ceilings=(parse_ceiling(chosen.p99_ceiling),),
        ram_budget=128 << 20,
        destructive=chosen.destructive,
    )
    frugal = searching(options)
    with (
        mock.patch.object(EarlyEnd, "judge", return_value=never_hopeless),
        mock.patch.object(EarlyEnd, "clear", return_value=never_clear),
        # No two trials are alike, so nothing measured before stands in for another.
        mock.patch.object(phase_runs, "relevant", side_effect=lambda *_: object()),
    ):
        lavish = searching(options)
    print(f"searching took {frugal / lavish:.2f} of the time that measuring everything takes")


def searching(options: Options) -> float:
    """Run; print the winner. Return the seconds that a trial of the search took on average."""
    with TemporaryDirectory() as state, LiveReporter(Console(stderr=True)) as reporter:
        done: Done = run(options, Path(state), reporter)
        trials = [t for t in Store(Path(state)).trials(done.number) if t.role == "search"]
    result = done.result
    gain = f"×{result.verdict.overall.ratio:.2f}" if result.verdict else "nothing"
    print(f"{len(trials)} trials: {gain} with {show_setting(result.winner, result.baseline)}")
    return sum(trial.seconds for trial in trials) / len(trials)


if __name__ == "__main__":
    main()
