"""python -m benchmarks.guard: a rebuild under `autotune guard`, beside fixed limits.

To be run in the lab, on an array of which a disk may fail. Each row is a whole rebuild of that disk
under the same foreground of fixed rate; its p99 is judged in windows of 30 s by that foreground's
own fio, without the first window.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from autotune.measure.fio import Fio, Job, Target
from autotune.measure.fio_output import Counters
from autotune.measure.workload import Probe
from autotune.quantities import parse_latency_ns, show_latency, show_seconds
from autotune.stats.histogram import Histogram, at_rank, total
from autotune.system.array import Array, find_array

WINDOW_S = 30.0
MEMBER = "vdd"
LONGEST_S = 3600.0


@dataclass
class Judge:
    """A foreground of fixed rate, and what it saw in each window."""

    array: Array
    iops: int
    windows: list[Histogram] = field(default_factory=list)

    def watch(self, over: Callable[[], bool]) -> float:
        """Run the foreground until `over`; return the seconds. The last window may be short, and
        then is not kept."""
        probe = Job("foreground", Probe(rate_iops=self.iops), self._target)
        with Fio([probe], LONGEST_S, seed=1) as fio:
            begin, started = None, time.monotonic()
            before: Counters | None = None
            while not over():
                counters = fio.poll(0.5)
                if counters is None:
                    continue
                now, latest = time.monotonic(), counters["foreground"]
                if begin is None:
                    begin, before = now, latest
                elif now - begin >= WINDOW_S and before is not None:
                    self.windows.append(dict(latest.since(before).reads))
                    begin, before = now, latest
            return time.monotonic() - started

    @property
    def _target(self) -> Target:
        return Target(Path(self.array.device), self.array.size_bytes)


def p99(histogram: Histogram) -> float:
    """In ns; exact, since nothing is concluded from one alone."""
    return at_rank(sorted(histogram.items()), 0.99 * sum(histogram.values()))


@dataclass(frozen=True)
class Row:
    """A rebuild: how long it took, and the p99 of each window in ns, without the first."""

    name: str
    seconds: float
    windows: tuple[float, ...]
    whole: float

    def held(self, ceiling_ns: float) -> int:
        return sum(window <= ceiling_ns for window in self.windows)


def mdadm(*words: str) -> None:
    subprocess.run(("mdadm", *words), check=True, capture_output=True)


def wait_for(array: Array, idle: bool) -> None:
    while ((array.md / "sync_action").read_text().strip() == "idle") != idle:
        time.sleep(0.05)


def take_out(array: Array) -> None:
    """Fail the member and take it out."""
    mdadm(array.device, "--fail", f"/dev/{MEMBER}")
    wait_for(array, idle=True)
    time.sleep(0.5)
    mdadm(array.device, "--remove", f"/dev/{MEMBER}")
    mdadm("--zero-superblock", f"/dev/{MEMBER}")


def rebuild(array: Array, name: str, iops: int) -> Row:
    """Put the member in again under the foreground."""
    judge = Judge(array, iops)
    mdadm(array.device, "--add", f"/dev/{MEMBER}")
    wait_for(array, idle=False)
    seconds = judge.watch(lambda: (array.md / "sync_action").read_text().strip() == "idle")
    # Of a rebuild that is over so soon there is only the first.
    windows = judge.windows[1:] or judge.windows
    whole = p99(total(windows)) if windows else float("nan")
    return Row(name, seconds, tuple(p99(window) for window in windows), whole)


def fixed(array: Array, limit: str, iops: int) -> Row:
    """A rebuild at a fixed limit."""
    (array.md / "sync_speed_max").write_text(limit)
    take_out(array)
    row = rebuild(array, "kernel defaults" if limit == "system" else f"fixed {limit}", iops)
    (array.md / "sync_speed_max").write_text("system")
    return row


def guarded(array: Array, ceiling: str, iops: int, log: Path | None) -> Row:
    """A rebuild under guard."""
    take_out(array)
    with TemporaryDirectory() as state:
        command = (sys.executable, "-m", "autotune", "guard", array.device, "--json", "--wait")
        child = subprocess.Popen(
            (*command, "--p99-ceiling", ceiling, "--state-dir", state),
            stdout=log.open("w") if log else subprocess.DEVNULL,
            env=os.environ,
        )
        time.sleep(10)
        row = rebuild(array, "autotune guard", iops)
        child.terminate()
        child.wait()
    return row


def table(rows: Sequence[Row], ceiling_ns: float) -> Table:
    """Rows as a table that fits 80 columns."""
    found = Table("", "rebuild", "windows held", "worst p99", "p99 of all", box=None)
    for row in rows:
        share = row.held(ceiling_ns) / max(len(row.windows), 1)
        found.add_row(
            row.name,
            show_seconds(row.seconds),
            f"{row.held(ceiling_ns)} of {len(row.windows)} ({share:.0%})",
            show_latency(max(row.windows, default=float("nan"))),
            show_latency(row.whole),
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard")
    parser.add_argument("device")
    parser.add_argument("--ceiling", default="150ms")
    parser.add_argument("--iops", type=int, default=60)
    parser.add_argument("--rows", default="guard,10000,12000,system", help="limits in KiB/s")
    parser.add_argument("--log", type=Path, help="a file for what the guard says")
    parser.add_argument("--out", type=Path, help="a file for the rows as JSON")
    chosen = parser.parse_args()
    array, ceiling_ns = find_array(chosen.device), parse_latency_ns(chosen.ceiling)
    rows = []
    for limit in chosen.rows.split(","):
        if limit == "guard":
            row = guarded(array, chosen.ceiling, chosen.iops, chosen.log)
        else:
            row = fixed(array, limit, chosen.iops)
        rows.append(row)
        print(f"{row.name}: {show_seconds(row.seconds)}", file=sys.stderr, flush=True)
        if chosen.out:
            chosen.out.write_text(json.dumps([vars(row) for row in rows]))
    Console().print(table(rows, ceiling_ns))


if __name__ == "__main__":
    main()
