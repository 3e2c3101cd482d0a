"""python -m benchmarks.requests DEVICE --destructive DEVICE: how large requests reach the array.

The array's own limit of a request is set to whole stripes, which is held against what was found:
measured in turn (A B B A), as a proof is, and judged by the same statistics.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from autotune.cli.options import STATE_DIR
from autotune.knobs import by_name
from autotune.measure.phase import Bench, measure
from autotune.measure.workload import parse_workload
from autotune.measure.write_budget import Written
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.report.live import LiveReporter
from autotune.safety.apply import apply
from autotune.stats.verdict import Verdict, judge
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session

LIMIT = by_name("array_max_sectors_kb")
TURNS = (True, False, False, True)
"""Whether the change is in force."""
LOADS = """
name = "requests"
[[phases]]
name = "stream"
weight = 1
load = { rw = "write", block_kib = 4096, depth = 4 }
[[phases]]
name = "copy"
weight = 1
load = { rw = "write", block_kib = 1024, buffered = true, sync_every = 32 }
[[phases]]
name = "random"
weight = 1
load = { rw = "randwrite", block_kib = 1024, depth = 8 }
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.requests")
    parser.add_argument("device")
    parser.add_argument("--destructive", help="name the device again; all data on it is lost")
    parser.add_argument("--rounds", type=int, default=2, help="so often A B B A")
    chosen = parser.parse_args()
    options = Options(
        chosen.device,
        parse_workload(LOADS, "requests"),
        destructive=chosen.destructive,
        knobs=(LIMIT,),
    )
    preparation = prepare(options, STATE_DIR)
    array, found = preparation.array, preparation.baseline
    stripe_kib = int((array.queue / "optimal_io_size").read_text()) // 1024
    print(
        f"{array.level} of {array.raid_disks}, chunks of {array.chunk_bytes >> 10} KiB, stripes of "
        f"{stripe_kib} KiB, Linux {array.kernel}; found: {_words(found)}"
    )
    with (
        TemporaryDirectory() as state,
        LiveReporter(Console(stderr=True)) as reporter,
        session(preparation, Path(state), reporter, Written()) as (bench, watch),
    ):
        watch.expect(None)
        for phase in preparation.phases:
            measure(phase, bench, 0)
        for change in _changes(preparation, stripe_kib):
            _print(change, _compared(preparation, bench, change, chosen.rounds))


def _changes(preparation: Preparation, stripe_kib: int) -> list[Setting]:
    """One stripe, and the most stripes that fit, each unless it was found."""
    limits = [int(value) for value in preparation.choices[LIMIT.name]]
    whole = [limit for limit in limits if limit % stripe_kib == 0]
    kept = dict.fromkeys((*whole[:1], *whole[-1:]))
    return [{LIMIT.name: k} for k in kept if k != preparation.baseline[LIMIT.name]]


def _compared(preparation: Preparation, bench: Bench, change: Setting, rounds: int) -> Verdict:
    sides: dict[bool, list[dict[str, Estimate]]] = {True: [], False: []}
    for number, changed in enumerate(TURNS * rounds):
        setting = {**preparation.baseline, **(change if changed else {})}
        apply(preparation.array, preparation.knobs, setting, bench.journal)
        figures: dict[str, Estimate] = {}
        for phase in preparation.phases:
            figures |= measure(phase, bench, number).figures
        sides[changed].append(figures)
    return judge(preparation.figures, sides[True], sides[False])


def _print(change: Setting, verdict: Verdict) -> None:
    for name, found in verdict.figures.items():
        print(
            f"{_words(change):26} {name:18} ×{found.ratio:.3f} "
            f"({found.low:.3f} to {found.high:.3f}) {found.conclusion}",
            flush=True,
        )


def _words(setting: Setting) -> str:
    return ", ".join(f"{name} {value}" for name, value in setting.items())


if __name__ == "__main__":
    main()
