"""Runs on made-up arrays whose phases take as long as in the lab, on a clock of their own."""

import dataclasses
import itertools
import math
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from fake_run import Machine, Silent

from autotune.measure.phase import Bench, PhaseResult
from autotune.measure.workload import Phase, load_workload
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting, Value
from autotune.tuning import trials
from autotune.tuning.preparation import Preparation
from autotune.tuning.run_progress import ENDING_S
from autotune.tuning.time_left import TimeLeft

SECONDS = {"idle": (9, 10), "read": (10, 13), "write": (10, 16), "mix": (9, 14), "resync": (11, 18)}
"""What phases of the workload balanced took in a default run on raid5-ssd."""
LONG_S, WARM_UP_S, BETWEEN_S = 63.0, 8.0, 1.0
STEPS = 4
"""A phase tells so often how far it is."""
CHOICES: dict[str, tuple[Value, ...]] = {
    "stripe_cache_size": (64, 128, 256, 384, 512, 1024, 2048, 4096, 8192, 16384),
    "sync_speed_min": (1000, 8000, 30_000, 100_000),
    "sync_speed_max": (50_000, 100_000, 200_000, 300_000, 600_000),
    "read_ahead_kb": (384, 768, 1536, 3072, 6144, 8192, 16384),
    "scheduler": ("mq-deadline", "none", "bfq"),
}
STRENGTHS = {
    "read": {"read_ahead_kb": 0.3, "scheduler": 0.05},
    "write": {"stripe_cache_size": 0.3, "scheduler": 0.05},
    "mix": {"stripe_cache_size": 0.1, "scheduler": 0.05},
    "resync": {
        **{"sync_speed_max": 0.2, "sync_speed_min": 0.15},
        **{"stripe_cache_size": 0.1, "scheduler": 0.05},
    },
}
"""How much a setting may bring, or cost, on log scale."""
Effect = Callable[[Value, Value], float]
"""Of a value, beside the original one."""


@dataclass(frozen=True)
class Told:
    """What a run said was left, when, and how long it then still took, in seconds."""

    at_s: float
    left: TimeLeft
    was_s: float

    @property
    def is_true(self) -> bool:
        """Whether that lay in what was told, or within a tenth of it."""
        return 0.9 * self.left.least_s <= self.was_s <= 1.1 * self.left.most_s


class Clock:
    """Seconds since a run's start, in place of the machine's clocks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        began = datetime(2026, 1, 1, tzinfo=UTC)

        class Moment(datetime):
            @classmethod
            def now(cls, tz: Any = None) -> datetime:  # type: ignore[override]
                return began + timedelta(seconds=self.now_s)

        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        monkeypatch.setattr(trials, "datetime", Moment)


class TimedMachine(Machine):
    """An array that follows from its number."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        super().__init__(root, monkeypatch)
        self._clock, self._number = Clock(monkeypatch), number
        self._original = dict(self.setting)
        self._count = itertools.count()
        self._drift = 0.0
        rng = random.Random(number)
        self._noise = rng.choice((0.02, 0.04, 0.06))
        self._gains = _effects(rng, 1.0)
        self._delays = _effects(rng, 0.5)
        self._heard: list[tuple[float, TimeLeft]] = []
        monkeypatch.setattr(Silent, "progress", self._hear)

    def told(self, time_s: float) -> list[Told]:
        """What a run of the default strategy told each minute, from its first third on."""
        self.run("bayes", trials=20, time_s=time_s)
        end_s = self._clock.now_s + ENDING_S
        minutes = range(60 * math.ceil(end_s / 180), math.floor(end_s), 60)
        heard = (next((h for h in self._heard if h[0] >= at_s), None) for at_s in minutes)
        return [Told(h[0], h[1], end_s - h[0]) for h in heard if h]

    def apply(self, *args: Any) -> Setting:
        self._clock.now_s += BETWEEN_S
        return super().apply(*args)

    def measure(self, phase: Phase, bench: Bench, seed: int, *_: object) -> PhaseResult:
        rng = random.Random(f"{self._number} {next(self._count)}")
        name, long = phase.name.removesuffix("-long"), phase.name.endswith("-long")
        seconds = rng.uniform(*SECONDS[name])
        if long or seed < 1000:
            seconds = LONG_S if long else WARM_UP_S
        for step in range(STEPS):
            bench.progress(phase, step / STEPS)
            self._clock.now_s += seconds / STEPS
        self._drift += rng.gauss(0, 0.004)
        figures = {}
        if phase.load or phase.check:
            log = self._effect(self._gains, name) + self._drift + rng.gauss(0, self._noise)
            figures[f"{phase.name}.throughput"] = Estimate(1e8 * math.exp(log), 0.8 * self._noise)
        if phase.probe:
            spread = 2.5 * self._noise
            log = self._effect(self._delays, name) + rng.gauss(0, spread)
            figures[f"{phase.name}.p99"] = Estimate(2e7 * math.exp(log), 0.8 * spread)
        missing = tuple(f.name for f in phase.figures() if f.name not in figures)
        return PhaseResult(phase.name, figures, seconds, True, missing, 0, measured_s=seconds)

    def preparation(self, strategy: str, **changes: Any) -> Preparation:
        known = super().preparation(strategy, **changes)
        workload = load_workload("balanced")
        return dataclasses.replace(
            known,
            options=dataclasses.replace(known.options, workload=workload, seed=self._number),
            choices=CHOICES,
            phases=workload.phases,
            figures=tuple(workload.figures),
        )

    def _effect(self, effects: dict[str, dict[str, Effect]], phase: str) -> float:
        moved = effects.get(phase, {}).items()
        return sum(effect(self.setting[knob], self._original[knob]) for knob, effect in moved)

    def _hear(self, _what: str, _share: float, left_s: float, most_s: float) -> None:
        self._heard.append((self._clock.now_s, TimeLeft(left_s, most_s)))


def _effects(rng: random.Random, strength: float) -> dict[str, dict[str, Effect]]:
    return {
        phase: {
            knob: (_names if knob == "scheduler" else _curve)(rng, strength * most)
            for knob, most in knobs.items()
        }
        for phase, knobs in STRENGTHS.items()
    }


def _names(rng: random.Random, strength: float) -> Effect:
    logs = {name: rng.gauss(0, strength) for name in CHOICES["scheduler"]}
    return lambda value, original: logs[str(value)] - logs[str(original)]


def _curve(rng: random.Random, strength: float) -> Effect:
    """Less and less, the further a value is from the original one."""
    height, width = rng.gauss(0, strength), rng.uniform(0.5, 3)

    def effect(value: Value, original: Value) -> float:
        doublings = math.log2(int(value) / int(original))
        return height * (1 - math.exp(-max(0.0, doublings) / width))

    return effect
