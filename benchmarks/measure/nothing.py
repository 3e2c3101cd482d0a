"""python -m benchmarks.measure.nothing DEVICE: is a difference found where there is none?

A setting that does nothing is measured in turn with the original one, as a run does it with a
setting that is given. Of so many runs, one in twenty may call it better or worse.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

from rich.console import Console

from autotune import knobs
from autotune.knobs.base import Number, PhaseKind, whole
from autotune.measure.workload import parse_workload
from autotune.problem.setting import Value
from autotune.report.live import LiveReporter
from autotune.stats.verdict import Conclusion
from autotune.system.array import Array
from autotune.system.sysfs import Write
from autotune.tuning.preparation import GIVEN, Given, Options
from autotune.tuning.run import run

RUNS = 20
SHORT = """
name = "short"
[[phases]]
name = "read"
weight = 1
load = { rw = "read", block_kib = 1024, buffered = true }
min_seconds = 4
max_seconds = 5
[[phases]]
name = "write"
weight = 1
load = { rw = "write", block_kib = 1024, streams = 3, buffered = true, sync_every = 8 }
min_seconds = 4
max_seconds = 5
"""


class Placebo(Number):
    """A number in a file that nobody reads."""

    name = "placebo"
    low, high, kernel_default = 1, 2, 1

    def __init__(self, path: Path) -> None:
        self._path = path
        path.write_text("1")

    def applies(self, array: Array) -> bool:
        return True

    def read(self, array: Array) -> Value:
        return whole(self._path)

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return (1, 2)

    def paths(self, array: Array) -> tuple[Path, ...]:
        return (self._path,)

    def writes(self, array: Array, value: Value) -> list[Write]:
        return [Write(self._path, str(value))]

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return True


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure.nothing")
    parser.add_argument("device")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--first", type=int, default=0, help="the first run's seed")
    parser.add_argument("--destructive", help="name the device again; all data on it is lost")
    chosen = parser.parse_args()
    same = 0
    for seed in range(chosen.first, chosen.first + chosen.runs):
        with TemporaryDirectory() as state, LiveReporter(Console(stderr=True)) as reporter:
            placebo = Placebo(Path(state) / "placebo")
            options = Options(
                chosen.device,
                parse_workload(SHORT, "short"),
                strategy=GIVEN,
                given=Given("placebo", {placebo.name: 2}),
                destructive=chosen.destructive,
                seed=seed,
                knobs=(placebo,),
            )
            with mock.patch.object(knobs, "ALL", (*knobs.ALL, placebo)):
                result = run(options, Path(state), reporter).result
        assert result.verdict is not None, result.reason
        overall = result.verdict.overall
        same += overall.conclusion is Conclusion.SAME
        ratio = f"×{overall.ratio:.3f} ({overall.low:.3f} to {overall.high:.3f})"
        print(f"{seed:2} {overall.conclusion:13} {ratio}", flush=True)
    print(f"{same} of {chosen.runs} proofs showed no difference")


if __name__ == "__main__":
    main()
