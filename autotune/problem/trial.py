"""One setting applied and measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting


class Status(StrEnum):
    COMPLETE = "complete"
    ABORTED = "aborted"
    """Ended early, for a ceiling or as surely slower than the best so far; the figures are what was
    learnt until then."""
    FAILED = "failed"
    """The measurement broke; says nothing of the setting."""
    INFEASIBLE = "infeasible"
    """The kernel did not take the value."""


ROLES = {
    "baseline": "original",
    "confirm-winner": "proof: new",
    "confirm-baseline": "proof: original",
    "check": "change needed?",
    "long-winner": "long load: new",
    "long-baseline": "long load: original",
}
"""What people read for a trial's role in its run; the others are called as they are."""


@dataclass(frozen=True)
class Trial:
    """One setting applied and measured."""

    setting: Setting
    status: Status
    figures: Mapping[str, Estimate]


@dataclass(frozen=True)
class Earlier:
    """What a trial of an earlier run showed, relative to the baseline's figures then (1.0).
    `doubt`: how far, in logs, its effect may have moved since."""

    setting: Setting
    figures: Mapping[str, Estimate]
    doubt: float
