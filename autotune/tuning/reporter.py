"""Who follows a run."""

from collections.abc import Mapping
from typing import Protocol

from autotune.problem.figure import Estimate
from autotune.store import TrialRecord


class Reporter(Protocol):
    """Hears of a run as it goes on."""

    def step(self, text: str) -> None:
        """A new part of the run begins."""

    def notice(self, text: str) -> None:
        """Something that must be shown, terminal or not."""

    def progress(
        self, what: str, share: float, left_s: float | None, most_s: float | None = None
    ) -> None:
        """`share` (0 to 1) of `what` is done; `left_s`: seconds left of the whole run, the least
        of them if `most_s` is given."""

    def ceilings(self, limits_ns: Mapping[str, float]) -> None:
        """The p99s that are limited from now on, by name, and how high each may be."""

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        """A trial has ended."""
