"""Settings held against each other by fio alone, in turn, without autotune's measuring code."""

import json
import math
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scipy.stats import t

from autotune.knobs import for_array, plan
from autotune.problem.setting import Setting
from autotune.system.array import Array

ROUNDS = 4
RUN_S, RAMP_S = 10, 2
CHECK_RAMP_S = 20
"""A check lasts for hours. It begins with a small stripe cache, which grows in these seconds, and
under some schedulers later than under others."""
FILE_MIB = 256
RECORD_KIB = 1024
SYNC_KIB = 32 * 1024
"""A writer has so much on disk before it goes on, whatever the size of its records is."""
RELATIVE_CEILING = 1.1
"""The default of `autotune run`: a p99 may be a tenth above what it was."""

Figures = dict[str, float]
"""By "phase.quantity": bytes/s and ns."""
Jobs = dict[str, Any]
"""What fio says of each job, by name."""
LOOK_S = 0.1
_POSITION = re.compile(r"check *= *[0-9.]+% \((\d+)/(\d+)\)")
"""KiB of each member. `sync_completed` knows only sixteenths of the whole."""
PHASES = ("read", "write", "mix", "resync")
"""What a comparison measures of each side; those that write only where there is a mount."""

_PROBE = (
    *("--name=probe", "--rw=randread", "--bs=4k", "--direct=1", "--ioengine=psync"),
    *("--new_group=1", "--numjobs=50", "--group_reporting=1"),
    *("--rate_iops=1", "--rate_process=poisson"),
    *("--lat_percentiles=1", "--norandommap=1", "--invalidate=0"),
)
"""Many readers who seldom read: none of them waits for another."""


@dataclass(frozen=True)
class Ratio:
    """How much more or less than before, with its 95 % interval."""

    ratio: float
    low: float
    high: float


class Judge:
    """Measures whole settings on an array; `mount` is where it may write, if anywhere.
    `record_kib`: how much a stream reads or writes at a time."""

    def __init__(self, array: Array, mount: Path | None, record_kib: int = RECORD_KIB) -> None:
        self._array, self._mount = array, mount
        self._stream = (f"--bs={record_kib}k", "--ioengine=psync")
        self._sync_every = SYNC_KIB // record_kib
        self._knobs = for_array(array)

    def compare(self, sides: Mapping[str, Setting]) -> dict[str, list[Figures]]:
        """Measure all sides in turn, to and fro: what each showed in each round."""
        found: dict[str, list[Figures]] = {name: [] for name in sides}
        self._measure(next(iter(sides.values())))
        for number in range(ROUNDS):
            for name in list(sides) if number % 2 == 0 else list(sides)[::-1]:
                found[name].append(self._measure(sides[name]))
        return found

    def _put(self, setting: Setting) -> None:
        for write in plan(self._array, setting, self._knobs):
            write.path.write_text(write.text)
        cache = self._array.md / "stripe_cache_size"
        if cache.exists():
            # What the load before made the kernel add goes.
            cache.write_text(cache.read_text().strip())
        Path("/proc/sys/vm/drop_caches").write_text("3")

    def measure(self, phase: str, setting: Setting) -> Figures:
        """One phase under a setting: "idle" or one of PHASES."""
        self._put(setting)
        do: dict[str, Callable[[], Figures]] = {
            "idle": self._idle,
            "read": self._read,
            "write": self._write,
            "mix": self._mix,
            "resync": self._resync,
        }
        return do[phase]()

    def _measure(self, setting: Setting) -> Figures:
        figures: Figures = {}
        for phase in PHASES if self._mount is not None else ("read", "resync"):
            figures |= self.measure(phase, setting)
        return figures

    def _idle(self) -> Figures:
        return {"idle.p99": _p99(self._fio(*_PROBE, *self._device))}

    def _read(self) -> Figures:
        done = self._fio("--name=load", "--rw=read", *self._stream, *self._device)
        return {"read.throughput": done["load"]["read"]["bw_bytes"]}

    def _write(self) -> Figures:
        load = ("--name=load", "--rw=write", *self._stream, f"--fsync={self._sync_every}")
        done = self._fio(*load, *self._file, *_PROBE, *self._device)
        return {"write.throughput": done["load"]["write"]["bw_bytes"], "write.p99": _p99(done)}

    def _mix(self) -> Figures:
        load = ("--name=load", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--direct=1")
        queue = ("--ioengine=libaio", "--iodepth=16", "--norandommap=1")
        done = self._fio(*load, *queue, *self._file)
        both = done["load"]["read"]["bw_bytes"] + done["load"]["write"]["bw_bytes"]
        return {"mix.throughput": both}

    def _resync(self) -> Figures:
        action = self._array.md / "sync_action"
        (self._array.md / "sync_min").write_text("0")
        checked: list[tuple[float, int]] = []
        whole = before = 0

        def look() -> None:
            nonlocal whole, before
            found = _POSITION.search(_section(self._array.name))
            if found is None:
                if action.read_text().strip() == "idle":
                    # It has come to the end, and goes on from the beginning.
                    whole, before = whole + before, 0
                    action.write_text("check")
                return
            checked.append((time.monotonic(), whole + int(found[1])))
            before = int(found[2])

        action.write_text("check")
        began = time.monotonic()
        try:
            while time.monotonic() - began < CHECK_RAMP_S:
                look()
                time.sleep(LOOK_S)
            checked.clear()
            done = self._fio(*_PROBE, *self._device, meanwhile=look)
        finally:
            action.write_text("idle")
            (self._array.md / "sync_min").write_text("0")
        rest = [seen for seen in checked if seen[0] - began >= CHECK_RAMP_S]
        (first_s, first_kib), (last_s, last_kib) = rest[0], rest[-1]
        rate = (last_kib - first_kib) * 1024 / (last_s - first_s)
        return {"resync.throughput": rate, "resync.p99": _p99(done)}

    @property
    def _device(self) -> tuple[str, ...]:
        return (f"--filename={self._array.device}",)

    @property
    def _file(self) -> tuple[str, ...]:
        return (f"--filename={self._mount}/panel", f"--size={FILE_MIB}M")

    def _fio(self, *words: str, meanwhile: Callable[[], None] = lambda: None) -> Jobs:
        """The results by job. CalledProcessError if fio fails."""
        times = ("--time_based=1", f"--runtime={RUN_S}", f"--ramp_time={RAMP_S}")
        command = ["fio", "--output-format=json", "--thread=1", *times, *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fio:
            while fio.poll() is None:
                meanwhile()
                time.sleep(LOOK_S)
            assert fio.stdout is not None
            said = fio.stdout.read()
        if fio.returncode:
            raise subprocess.CalledProcessError(fio.returncode, command)
        return {job["jobname"]: job for job in json.loads(said[said.index("{") :])["jobs"]}


def _section(name: str) -> str:
    """What /proc/mdstat says of an array."""
    text = Path("/proc/mdstat").read_text()
    found = re.search(rf"^{name} : .*?(?=^\S|\Z)", text, re.M | re.S)
    return found[0] if found else ""


def _p99(done: Jobs) -> float:
    return float(done["probe"]["read"]["lat_ns"]["percentile"]["99.000000"])


def ratio(before: Sequence[float], after: Sequence[float]) -> Ratio:
    """Of two sides measured in pairs."""
    logs = [math.log(b / a) for a, b in zip(before, after, strict=True)]
    half = float(t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
    middle = mean(logs)
    return Ratio(math.exp(middle), math.exp(middle - half), math.exp(middle + half))


def overall(figures: Figures) -> float:
    """The geometric mean of the throughputs, all of which count alike in `balanced`."""
    rates = [value for name, value in figures.items() if name.endswith(".throughput")]
    return math.exp(mean(math.log(rate) for rate in rates))


def gained(before: Sequence[Figures], after: Sequence[Figures]) -> Ratio:
    return ratio([overall(f) for f in before], [overall(f) for f in after])


def broken(before: Sequence[Figures], after: Sequence[Figures]) -> list[str]:
    """The latencies that are surely over the default ceiling."""
    names = [name for name in before[0] if name.endswith(".p99")]
    found = {name: ratio([f[name] for f in before], [f[name] for f in after]) for name in names}
    return [name for name, each in found.items() if each.low > RELATIVE_CEILING]
