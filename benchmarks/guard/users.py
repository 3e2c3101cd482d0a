"""Users of an array who come and go, and what they felt. To be run in the lab."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.fio_output import Counters
from autotune.measure.workload import Probe
from autotune.stats.histogram import Histogram, at_rank, total
from autotune.system.array import Array

WINDOW_S = 30.0
HERE_S, AWAY_S = 3 * WINDOW_S + 5.0, 3 * WINDOW_S
"""Whole half minutes: fio is asked twice a second, so they last a little longer. Away
for longer than the guard waits for somebody who comes back soon (`measure/foreground.py`)."""
LONGEST_S = 3600.0


@dataclass
class Users:
    """Small reads at a fixed rate, for `HERE_S`, then none for `AWAY_S`, and so on; or all the
    time if they `stay`. Their own fio says what each half minute was like; the first one after
    they came is kept apart, because nobody knows of them before."""

    array: Array
    iops: int
    stay: bool = False
    arrivals: list[Histogram] = field(default_factory=list)
    windows: list[Histogram] = field(default_factory=list)

    def watch(self, over: Callable[[], bool]) -> float:
        """Come and go until `over`; return the seconds. A window that was cut is not kept."""
        started = time.monotonic()
        while not over():
            self._here(over)
            left = time.monotonic()
            while not over() and time.monotonic() - left < AWAY_S:
                time.sleep(0.05)
        return time.monotonic() - started

    def _here(self, over: Callable[[], bool]) -> None:
        target = Target(Path(self.array.device), self.array.size_bytes)
        job = Job("users", Probe(rate_iops=self.iops), target)
        into, since, before = self.arrivals, 0.0, None
        came: float | None = None
        with Fio([job], LONGEST_S, seed=1) as fio:
            while not over():
                counters = fio.poll(0.5)
                now = time.monotonic()
                if counters is None:
                    continue
                latest: Counters = counters["users"]
                if before is None:
                    came, since, before = now, now, latest
                elif now - since >= WINDOW_S:
                    into.append(dict(latest.since(before).reads))
                    into, since, before = self.windows, now, latest
                if came is not None and now - came >= HERE_S and not self.stay:
                    return

    def p99s(self) -> list[float]:
        """In ns, of each half minute that was not the first."""
        return [p99(window) for window in self.windows]

    def whole_p99(self) -> float:
        """In ns, of all their requests in whole half minutes."""
        return p99(total([*self.arrivals, *self.windows]))


def p99(histogram: Histogram) -> float:
    """In ns; exact, since nothing is concluded from one alone. NaN of none."""
    count = sum(histogram.values())
    return float(at_rank(sorted(histogram.items()), 0.99 * count)) if count else float("nan")
