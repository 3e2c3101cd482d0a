"""How the knobs of a synthetic array move its figures, on log scale, 0 at the baseline."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.problem.setting import Value

Array = NDArray[Any]
Columns = Mapping[str, Array]
"""A column of values for each knob."""
Curves = Callable[[Columns], dict[str, Array]]

RANGES = {
    "stripe_cache_size": (64, 32768),
    "read_ahead_kb": (64, 16384),
    "sync_speed_max": (12_500, 3_200_000),
    "sync_speed_min": (1000, 256_000),
    "nr_requests": (16, 1024),
    "group_thread_cnt": (1, 9),
    "max_sectors_kb": (128, 1024),
}
"""Where a knob's scale is 0 and 1; threads count from 1."""
MEDIA = {"hdd": (60e3, 200e3), "ssd": (250e3, 550e3), "nvme": (600e3, 2000e3)}
"""What a member can sync, in KiB/s."""


class DrawnCurves:
    """The curves of one array.

    A sync runs at the softened minimum of its limit and what the disks leave it, but not under
    its lower limit; the probe's latency grows with the disks' use, steeply towards the end.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        baseline: Mapping[str, Value],
        moved_by: Mapping[str, set[str]],
        kind: str,
        strength: float,
    ) -> None:
        self._baseline = {knob: np.array([value]) for knob, value in baseline.items()}
        self._moved_by = moved_by
        self._kind = kind
        self._strength = strength
        knobs = list(baseline)
        count = len(knobs) // 2 if kind == "dead" else int(rng.integers(0, 2))
        self._dead = set(rng.choice(knobs, count, replace=False))
        if kind == "tight":
            self._dead = set()
        turned = kind == "inverted"

        def grow(centre: float, spread: float = 0.45) -> float:
            return float(np.exp(rng.normal(np.log(centre), spread)))

        self._names = {f: rng.normal(0.0, 0.3 if f.endswith("p99") else 0.15, 3) for f in moved_by}
        self._slopes = {figure: rng.normal(0.0, 0.1, len(knobs)) for figure in moved_by}
        self._pairs = {
            figure: self._draw_pairs(rng, knobs, moved_by[figure], 1.0 if turned else 0.6)
            for figure in moved_by
        }
        self._peak = float(rng.uniform(0.0, 0.3) if turned else rng.uniform(0.4, 1.0))
        self._ahead = (grow(1.2), grow(0.8))
        self._cache = grow(1.8) * (-0.5 if turned else 1.0)
        self._full = float(rng.uniform(0.4, 0.9))
        self._past = float(rng.uniform(0.0, 0.8))
        self._queue = (float(rng.uniform(0.2, 0.9)), grow(0.5))
        low, high = MEDIA[str(rng.choice(list(MEDIA)))]
        self._disk = float(np.exp(rng.uniform(np.log(low), np.log(high))))
        self._left = float(rng.uniform(0.3, 0.95))
        self._cache_syncs = float(rng.normal(0.2, 0.25))
        self._hurt = (grow(3.0), float(rng.uniform(0.6, 1.4)))
        self._queue_waits = abs(float(rng.normal(1.0, 0.5)))
        self._cache_waits = float(rng.normal(0.3, 0.3))
        self._hidden = {figure: float(rng.choice([-0.1, 0.1])) for figure in moved_by}

    def __call__(self, columns: Columns) -> dict[str, Array]:
        now, before = self._raw(columns), self._raw(self._baseline)
        logs = {figure: self._strength * (now[figure] - before[figure]) for figure in now}
        if self._kind == "default-best":
            for figure, log in logs.items():
                if figure.endswith("throughput"):
                    logs[figure] = -np.abs(log)
        if self._kind == "tight":
            for figure, log in logs.items():
                if figure.endswith("p99"):
                    moved = [k for k in self._moved_by[figure] if k in columns]
                    changed = sum(columns[k] != self._baseline[k] for k in moved)
                    logs[figure] = np.abs(log) + 0.08 * np.asarray(changed)
        return logs

    def _draw_pairs(
        self, rng: np.random.Generator, knobs: list[str], moved_by: set[str], size: float
    ) -> list[tuple[str, str, float]]:
        ordered = [knob for knob in knobs if knob in moved_by and knob != "scheduler"]
        if len(ordered) < 2:
            return []
        found = []
        for _ in range(2):
            one, other = rng.choice(ordered, 2, replace=False)
            found.append((str(one), str(other), float(rng.normal(0.0, size))))
        return found

    def _raw(self, columns: Columns) -> dict[str, Array]:
        """The log figures up to a constant."""
        live = {
            knob: np.broadcast_to(self._baseline[knob], column.shape)
            if knob in self._dead
            else column
            for knob, column in columns.items()
        }
        at = {knob: _place(knob, column) for knob, column in live.items() if knob in RANGES}
        cache, queue, ahead = at["stripe_cache_size"], at["nr_requests"], at["read_ahead_kb"]
        logs: dict[str, Array] = {}
        for figure, names in self._names.items():
            total = names[_name(live["scheduler"])]
            for number, knob in enumerate(columns):
                if knob not in at:
                    continue
                if knob in self._moved_by[figure]:
                    total = total + self._slopes[figure][number] * at[knob]
                elif self._kind == "hidden" and knob not in self._dead:
                    total = total + self._hidden[figure] * (at[knob] - 0.5)
            for one, other, size in self._pairs[figure]:
                total = total + size * (at[one] - 0.5) * (at[other] - 0.5) * 2.0
            logs[figure] = total
        short, long = self._ahead
        rising = np.maximum(self._peak - ahead, 0.0) ** 1.3
        falling = np.maximum(ahead - self._peak, 0.0) ** 1.3
        logs["read.throughput"] += -short * rising - long * falling
        logs["write.throughput"] += self._cache * -_soft(self._full - cache)
        logs["write.throughput"] -= self._past * np.maximum(cache - self._full, 0.0)
        logs["mix.throughput"] -= self._queue[1] * np.abs(queue - self._queue[0])
        logs["mix.p99"] += self._queue_waits * queue + self._cache_waits * cache
        able = self._disk * np.exp(self._cache_syncs * cache + logs["resync.throughput"])
        left = _least(live["sync_speed_max"], self._left * able)
        rate = np.maximum(left, _least(live["sync_speed_min"], able))
        used = np.minimum(rate / able, 1.0)
        size, power = self._hurt
        logs["resync.throughput"] = np.log(rate)
        logs["resync.p99"] += np.log1p(size * used**power / (1.15 - used))
        return logs


def _place(knob: str, values: Array) -> Array:
    low, high = RANGES[knob]
    shifted = values + 1 if knob == "group_thread_cnt" else values
    return np.asarray(np.log(shifted / low) / np.log(high / low), dtype=float)


def _name(values: Array) -> Array:
    return np.searchsorted(["bfq", "mq-deadline", "none"], values)


def _soft(x: Array) -> Array:
    """max(x, 0) with its corner rounded."""
    return np.asarray(np.logaddexp(0.0, 12.0 * x) / 12.0, dtype=float)


def _least(one: Array, other: Array) -> Array:
    """The smaller of two rates, a little less where they are alike."""
    return np.asarray((one**-3.0 + other**-3.0) ** (-1.0 / 3.0), dtype=float)
