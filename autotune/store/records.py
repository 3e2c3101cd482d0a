"""What comes out of the store: runs and trials, free of the database."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import Status, Trial


@dataclass(frozen=True)
class TrialRecord:
    """A trial as stored: what was asked, what took effect, what it showed."""

    number: int
    role: str
    started: datetime
    seconds: float
    status: Status
    reason: str
    requested: Setting
    effective: Setting
    figures: dict[str, Estimate]
    measured: tuple[str, ...]
    bytes_written: int = 0

    @property
    def middle_s(self) -> float:
        """The middle of the trial, in seconds since the epoch."""
        return self.started.timestamp() + self.seconds / 2

    @property
    def trial(self) -> Trial:
        """What a strategy is told."""
        return Trial(self.requested, self.status, self.figures)


@dataclass(frozen=True)
class RunRecord:
    """A run as stored, without its trials."""

    id: int
    uuid: str
    device: str
    fingerprint: str
    started: datetime
    ended: datetime | None
    state: str
    outcome: str
    problem: dict[str, Any]
    profile: dict[str, Any] | None
    trials: int
    said: dict[str, Any] | None = None
    """What it said at its end, where one run is asked for; older versions did not store it."""
