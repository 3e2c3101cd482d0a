"""One short check after the other, each from a place and at a limit: how fast it got on, and what
users felt. What is written goes through the journal, and is bounded in time."""

import math
import time
from dataclasses import dataclass, field

from autotune.knobs import read_setting
from autotune.knobs.sync_speed import SyncSpeedMax, SyncSpeedMin
from autotune.measure.check import Check
from autotune.measure.foreground import CLOCK_S, PROBE, Foreground, Second
from autotune.measure.foreground_probe import RATE_IOPS
from autotune.problem.figure import Estimate
from autotune.safety.apply import apply
from autotune.safety.journal import Journal
from autotune.safety.watch import Watch
from autotune.stats.batch_means import MIN_BATCHES
from autotune.stats.steady_state import rate
from autotune.sync_forecast.user_latency import surely_over
from autotune.system import disk_load, sysfs
from autotune.system.array import Array, Media
from autotune.system.sync import FLOOR_KIB

KNOBS = (SyncSpeedMin(), SyncSpeedMax())
RAMP_S = 2.0
"""A check is still gaining speed, and what waited for the one before comes to its end."""
LOOK_S = 0.02
TICK_S = 0.5
PATIENCE = 3
"""How many times its time a check gets on a machine that is too busy to look at it."""
SIZE_ALIGN_KIB = 4
PROBE_IOPS, PROBE_IOPS_EACH_HDD = 200, 10


def probe_iops(array: Array) -> int:
    """Of a probe that is there for minutes, not for hours: more than the guard's."""
    if array.media is not Media.HDD:
        return PROBE_IOPS
    return min(max(PROBE_IOPS_EACH_HDD * array.raid_disks, RATE_IOPS[Media.HDD]), PROBE_IOPS)


@dataclass
class CheckFigures:
    """What some seconds showed; `kib_s` as /proc/mdstat counts, None without a check."""

    kib_s: Estimate | None
    seconds: list[Second] = field(default_factory=list)
    over: bool = False
    """It ended early, since the ceiling was passed beyond doubt."""


class CheckBench:
    """An array at which checks are tried. `ceiling_ns`: what the p99 must not pass, infinite if
    nothing was said. `size_kib` is what a check goes over."""

    def __init__(self, array: Array, journal: Journal, watch: Watch, ceiling_ns: float) -> None:
        self._array = array
        self._journal = journal
        self._watch = watch
        self._ceiling_ns = ceiling_ns
        self.found = read_setting(array, KNOBS)
        self.member_kib = int(sysfs.read(array.md / "component_size"))
        self.size_kib = self.member_kib
        if array.level == "raid10":
            # A check there goes by the array's own addresses.
            self.size_kib = array.size_bytes // 1024
        watch.expect(self.found)

    def limit(self, kib_s: float) -> None:
        """Let a check go no faster, in what /proc/mdstat counts."""
        self._watch.expect(None)
        high = max(round(kib_s), FLOOR_KIB)
        low = max(1, min(int(self.found["sync_speed_min"]), FLOOR_KIB))
        setting = {"sync_speed_min": low, "sync_speed_max": high}
        self._watch.expect(apply(self._array, KNOBS, setting, self._journal))

    def users(self) -> tuple[bool, str, float]:
        """Whether anybody uses the array, where their latencies are to come from, and what they
        take of the disks' time, by some seconds of the kernel's counters."""
        began, busy_ms = time.monotonic(), self._busy_ms()
        with Foreground(self._array, math.inf) as foreground:
            deadline = time.monotonic() + CLOCK_S + 2
            while time.monotonic() < deadline:
                self._watch()
                foreground.look(time.monotonic())
                time.sleep(LOOK_S)
            busy = foreground.seen
            passed_ms = (time.monotonic() - began) * 1000 * max(len(self._array.disks), 1)
            share = (self._busy_ms() - busy_ms) / passed_ms if busy else 0.0
            return busy, foreground.source if busy else PROBE, share

    def _busy_ms(self) -> int:
        """For how long the members' disks have been at work, all together."""
        return sum(disk_load.busy_ms(disk, self._array.root) for disk in self._array.disks)

    def check(
        self,
        place: float,
        seconds: float,
        foreground: Foreground | None = None,
        rated: bool = False,
    ) -> CheckFigures:
        """A check from a place (0 to 1) for so long after its ramp. `rated`: be it that the ceiling
        is passed, its speed is to be known."""
        unit = max(SIZE_ALIGN_KIB, self._array.chunk_bytes // 1024)
        start = int(place * self.size_kib) // unit * unit
        check = Check(self._array.name, self._journal, self._watch, self._array.root, start)
        with check:
            return self._see(seconds, foreground, check, MIN_BATCHES if rated else 0)

    def idle(self, seconds: float, foreground: Foreground) -> CheckFigures:
        """The same without a check."""
        return self._see(seconds, foreground, None)

    def _see(
        self,
        seconds: float,
        foreground: Foreground | None,
        check: Check | None,
        least_spans: int = 0,
    ) -> CheckFigures:
        seen, began = CheckFigures(None), time.monotonic()
        amounts: list[float] = []
        spans: list[float] = []
        before: tuple[float, int] | None = None
        while (now := time.monotonic()) - began < RAMP_S + seconds or (
            check is not None and len(spans) < MIN_BATCHES and now - began < PATIENCE * seconds
        ):
            self._watch()
            second = foreground.look(now) if foreground is not None else None
            if now - began < RAMP_S:
                if foreground is not None:
                    foreground.forget()
            elif second is not None:
                seen.seconds.append(second)
                seen.over = surely_over(seen.seconds, self._ceiling_ns)
            if seen.over and len(spans) >= least_spans:
                break
            if check is not None and (before is None or now - before[0] >= TICK_S):
                done = check.done_bytes()
                if before is not None and now - began >= RAMP_S:
                    spans.append(now - before[0])
                    amounts.append((done - before[1]) / 1024)
                before = now, done
            time.sleep(LOOK_S)
        seen.kib_s = rate(amounts, spans)
        return seen
