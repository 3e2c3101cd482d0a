"""python -m benchmarks.forecast.rebuild: a forecast, then the rebuild that it was of. In the lab.

Before the forecast and through the rebuild runs the same foreground: reads of a fixed rate, whose
own fio says what their p99 really was. The rebuild goes at one of the forecast's speeds.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.fio_output import Counters
from autotune.measure.workload import Probe
from autotune.stats.histogram import at_rank
from autotune.sync_forecast import stored
from autotune.sync_forecast.model import REBUILD, Forecast
from autotune.system.array import Array, find_array

LONGEST_S = 3600.0
SETTLE_S = 5.0


class Foreground:
    """Reads of a fixed rate, in a thread; none if the rate is 0."""

    def __init__(self, array: Array, iops: int) -> None:
        self._target = Target(Path(array.device), array.size_bytes)
        self._iops = iops
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._latest: Counters | None = None
        self._since: Counters | None = None

    def _run(self) -> None:
        job = Job("foreground", Probe(rate_iops=self._iops), self._target)
        with Fio([job], LONGEST_S, seed=1) as fio:
            while not self._over.is_set():
                counters = fio.poll(0.5)
                if counters is not None:
                    self._latest = counters["foreground"]

    def begin(self) -> None:
        """What comes from now on is what counts."""
        self._since = self._latest

    def p99_ns(self) -> float | None:
        """Since `begin`."""
        if self._latest is None or self._since is None:
            return None
        reads = self._latest.since(self._since).reads
        return float(at_rank(sorted(reads.items()), 0.99 * sum(reads.values())))

    def __enter__(self) -> "Foreground":
        if self._iops:
            self._thread.start()
            time.sleep(SETTLE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._iops:
            self._thread.join()


def mdadm(*words: str) -> None:
    subprocess.run(("mdadm", *words), check=True, capture_output=True)


def is_idle(array: Array) -> bool:
    return (array.md / "sync_action").read_text().strip() == "idle"


def wait_for(array: Array, idle: bool) -> None:
    while is_idle(array) != idle:
        time.sleep(0.05)


def take_out(array: Array, member: str) -> None:
    """Fail the member and take it out."""
    mdadm(array.device, "--fail", member)
    wait_for(array, idle=True)
    time.sleep(0.5)
    mdadm(array.device, "--remove", member)
    mdadm("--zero-superblock", member)


def rebuild(array: Array, limit: str, foreground: Foreground) -> tuple[float, float | None]:
    """Seconds and the foreground's p99 of a rebuild of the last member."""
    member = f"/dev/{array.members[-1].name}"
    (array.md / "sync_speed_max").write_text(limit)
    take_out(array, member)
    mdadm(array.device, "--add", member)
    wait_for(array, idle=False)
    foreground.begin()
    began = time.monotonic()
    wait_for(array, idle=True)
    taken = time.monotonic() - began
    p99_ns = foreground.p99_ns()
    (array.md / "sync_speed_max").write_text("system")
    return taken, p99_ns


def foretold(array: Array, seconds: str) -> Forecast:
    """What the command says, as it is stored."""
    with TemporaryDirectory() as state:
        words = ("forecast", array.device, "--time", seconds, "--state-dir", state)
        subprocess.run((sys.executable, "-m", "autotune", *words), check=True, env=os.environ)
        found = stored.newest(array, Path(state))
    assert found is not None
    return found


def compared(
    forecast: Forecast, share: float, taken_s: float, p99_ns: float | None
) -> dict[str, float | bool | None]:
    """A row: what was said, what came, their ratio, and whether the interval held."""
    kib_s = share * forecast.full_kib_s if share < 1 else math.inf
    time_, felt = forecast.time(REBUILD, kib_s), forecast.p99(REBUILD, kib_s)
    low, high = time_.interval
    row: dict[str, float | bool | None] = {
        "share": share,
        "said_s": time_.value,
        "took_s": taken_s,
        "time_ratio": taken_s / time_.value,
        "time_held": low <= taken_s <= high,
    }
    if felt is not None and p99_ns is not None:
        low, high = felt.interval
        row |= {
            "said_p99_ms": felt.value / 1e6,
            "p99_ms": p99_ns / 1e6,
            "p99_ratio": p99_ns / felt.value,
            "p99_held": low <= p99_ns <= high,
        }
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forecast.rebuild")
    parser.add_argument("device")
    parser.add_argument("--iops", type=int, default=0, help="of the foreground")
    parser.add_argument("--shares", default="1,0.5", help="of full speed, to rebuild at")
    parser.add_argument("--time", default="4min", help="of the forecast")
    parser.add_argument("--out", type=Path, help="a file to add the rows to, as JSON lines")
    chosen = parser.parse_args()
    array = find_array(chosen.device)
    name = f"{array.level}-{array.raid_disks}{array.media.value}"
    with Foreground(array, chosen.iops) as foreground:
        forecast = foretold(array, chosen.time)
        if chosen.out:
            kept = chosen.out.with_name(f"{name}-{chosen.iops}.json")
            kept.write_text(json.dumps(forecast.document()))
        for share in map(float, chosen.shares.split(",")):
            limit = "system" if share == 1 else str(round(share * forecast.full_kib_s))
            row = compared(forecast, share, *rebuild(array, limit, foreground))
            line = json.dumps({"array": name, "iops": chosen.iops, **row})
            print(line, flush=True)
            if chosen.out:
                with chosen.out.open("a") as file:
                    file.write(line + "\n")


if __name__ == "__main__":
    main()
