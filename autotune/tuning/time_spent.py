"""Where the time of a run goes: to measuring, and to what measuring needs."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MEASURING = "measuring"
PREPARING = "preparing"
WARMING = "warm-up"
STARTING = "starting and ending loads"
RAMP = "letting loads settle"
APPLYING = "applying settings"
STORING = "storing trials"
THINKING = "choosing settings"
KINDS = (MEASURING, PREPARING, WARMING, STARTING, RAMP, APPLYING, STORING, THINKING)


@dataclass
class Spent:
    """Seconds by kind, of one run without those of before it was cut."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))

    def add(self, kind: str, seconds: float) -> None:
        self.seconds[kind] += max(0.0, seconds)

    @contextlib.contextmanager
    def on(self, kind: str) -> Iterator[None]:
        """What passes meanwhile is of this kind, however it ends."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.add(kind, time.monotonic() - began)

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def overhead(self) -> Mapping[str, float]:
        """All but measuring, the longest first."""
        rest = [(kind, s) for kind, s in self.seconds.items() if kind != MEASURING]
        return dict(sorted(rest, key=lambda each: -each[1]))

    @property
    def measured_share(self) -> float:
        """The share of the time that was measuring; 0 of no time."""
        return self.seconds[MEASURING] / self.total if self.total else 0.0
