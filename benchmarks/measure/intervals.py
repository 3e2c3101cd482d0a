"""python -m benchmarks.measure.intervals DEVICE: do the stated 95 % intervals hold the truth?

Every phase is measured ten times at one setting, as a run measures it, and half
way for a minute, which stands for the truth. A small stripe cache has none: the kernel makes it
grow under load, so that a minute is faster than ten seconds; hence --stripes.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from autotune.cli.options import STATE_DIR
from autotune.measure.phase import Bench, measure
from autotune.measure.workload import Phase, load_workload
from autotune.measure.write_budget import Written
from autotune.problem.figure import Estimate
from autotune.report.live import LiveReporter
from autotune.safety.apply import apply
from autotune.tuning.preparation import Options
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session

COUNT = 10
LONG_S = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure.intervals")
    parser.add_argument("device")
    parser.add_argument("--workload", default="quick")
    parser.add_argument("--destructive", help="name the device again; all data on it is lost")
    parser.add_argument("--stripes", type=int, help="stripe_cache_size; else as it is")
    chosen = parser.parse_args()
    options = Options(chosen.device, load_workload(chosen.workload), destructive=chosen.destructive)
    preparation = prepare(options, STATE_DIR)
    with (
        TemporaryDirectory() as state,
        LiveReporter(Console(stderr=True)) as reporter,
        session(preparation, Path(state), reporter, Written()) as (bench, watch),
    ):
        watch.expect(None)
        if chosen.stripes:
            setting = {**preparation.baseline, "stripe_cache_size": chosen.stripes}
            apply(preparation.array, preparation.knobs, setting, bench.journal)
        warm_up(preparation.phases, bench)
        short: list[dict[str, Estimate]] = []
        truth: dict[str, Estimate] = {}
        for number in range(COUNT):
            if number == COUNT // 2:
                for phase in preparation.phases:
                    seconds = {"min_seconds": LONG_S, "max_seconds": LONG_S}
                    truth |= measure(phase.model_copy(update=seconds), bench, 99).figures
            results = [measure(phase, bench, number) for phase in preparation.phases]
            short.append({n: e for result in results for n, e in result.figures.items()})
    for name, long in truth.items():
        print_row(name, long, [figures[name] for figures in short if name in figures])


def warm_up(phases: tuple[Phase, ...], bench: Bench) -> None:
    """The first touch of everything is slower, and belongs to no setting."""
    for phase in phases:
        measure(phase, bench, 0)


def print_row(name: str, long: Estimate, short: list[Estimate]) -> None:
    """How many of the intervals hold the long figure, and what each stated."""
    intervals = [estimate.interval for estimate in short]
    held = sum(low <= long.value <= high for low, high in intervals)
    ratios = " ".join(
        f"{e.value / long.value:.2f}±{e.interval[1] / e.value - 1:.2f}" for e in short
    )
    print(f"{name:20} {held:2} of {len(short)} hold it: {ratios}")


if __name__ == "__main__":
    main()
