"""python -m benchmarks.measure.check_start: how a check begins, by the size of the stripe cache.

To be run in the lab, on /dev/md0. Small reads go on beside a check; of every five seconds it prints
the speed of the check and the p99 of the reads.
"""

import argparse
import subprocess
import time
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from autotune.knobs.stripe_cache import stripes
from autotune.quantities import show_latency, show_rate
from autotune.system.array import Array, find_array
from autotune.system.mdstat import sync_position_kib

DEVICE = "/dev/md0"
WINDOW_S, WINDOWS = 5, 9
IOPS = 50
MSTAT = Path("/proc/mdstat")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.measure.check_start")
    parser.add_argument("--stripes", type=int, nargs="+", default=[256, 1024, 4096])
    chosen = parser.parse_args()
    array = find_array(DEVICE)
    table = Table("stripes", *(f"{n * WINDOW_S} s" for n in range(WINDOWS)), box=None)
    for size in chosen.stripes:
        speeds, tails, grown = watched(array, size)
        table.add_row(str(size), *(show_latency(ns) for ns in tails))
        table.add_row("", *map(show_rate, speeds))
        table.add_row("", *map(str, grown))
    print(f"{DEVICE}: p99 of {IOPS} reads a second, speed of the check, stripes by then")
    Console(width=100).print(table)


def watched(array: Array, size: int) -> tuple[list[float], list[int], list[int]]:
    """Of each window: the check's bytes/s of each member, the reads' p99 in ns, and the stripes."""
    cache, action = array.md / "stripe_cache_size", array.md / "sync_action"
    cache.write_text(str(size))
    speeds, grown = [], []
    with TemporaryDirectory() as folder:
        action.write_text("check")
        try:
            fio = subprocess.Popen(probe(Path(folder)), stdout=subprocess.DEVNULL)
            began = before_s = time.monotonic()
            before = position(array)
            for window in range(1, WINDOWS + 1):
                time.sleep(max(0.0, began + window * WINDOW_S - time.monotonic()))
                now_s, now = time.monotonic(), position(array)
                speeds.append((now - before) * 1024 / (now_s - before_s))
                grown.append(stripes(array) or 0)
                before_s, before = now_s, now
            fio.wait()
        finally:
            action.write_text("idle")
            (array.md / "sync_min").write_text("0")
        return speeds, p99s(Path(folder)), grown


def probe(folder: Path) -> list[str]:
    """fio's command: many who read once a second, with a line for each read in their logs."""
    job = ("--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync", f"--numjobs={IOPS}")
    rate = ("--rate_iops=1", "--rate_process=poisson", "--norandommap=1", "--invalidate=0")
    times = ("--time_based=1", f"--runtime={WINDOW_S * WINDOWS}")
    log = (f"--write_lat_log={folder}/probe", "--log_avg_msec=0")
    return ["fio", "--name=probe", f"--filename={DEVICE}", "--thread=1", *job, *rate, *times, *log]


def p99s(folder: Path) -> list[int]:
    """The p99 of the reads that were answered in each window."""
    windows: list[list[int]] = [[] for _ in range(WINDOWS)]
    logs = (log.read_text().splitlines() for log in folder.glob("probe_lat.*.log"))
    for line in chain.from_iterable(logs):
        at_ms, ns = (int(field) for field in line.split(",")[:2])
        window = at_ms // (1000 * WINDOW_S)
        if window < WINDOWS:
            windows[window].append(ns)
    return [sorted(each)[round(0.99 * (len(each) - 1))] if each else 0 for each in windows]


def position(array: Array) -> int:
    """KiB of each member that the check has read."""
    found = sync_position_kib(MSTAT.read_text(), array.name)
    if found is None:
        raise SystemExit(f"The check of {DEVICE} came to its end; take larger disks.")
    return found[0]


if __name__ == "__main__":
    main()
