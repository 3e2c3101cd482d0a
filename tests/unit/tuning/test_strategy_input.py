"""What a strategy is told of trials under a drift."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.stats.drift import Anchor
from autotune.store import TrialRecord
from autotune.tuning import strategy_input

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def record(number: int, role: str, measured: tuple[str, ...], **rates: Estimate) -> TrialRecord:
    figures = {f"{phase}.throughput": rate for phase, rate in rates.items()}
    started = BEGAN + timedelta(seconds=100 * number)
    return TrialRecord(number, role, started, 10, Status.COMPLETE, "", {}, {}, figures, measured)


def test_what_was_carried_over_is_freed_of_the_drift_when_it_was_measured() -> None:
    """Everything halves between the fourth trial and the fifth."""
    read = Estimate(100.0, 0.01)
    both = ("read", "write")
    records = [
        record(1, "baseline", both, read=read, write=Estimate(50.0, 0.01)),
        record(2, "baseline", both, read=Estimate(100.1, 0.01), write=Estimate(50.1, 0.01)),
        record(3, "search", both, read=Estimate(120.0, 0.01), write=Estimate(60.0, 0.01)),
        record(4, "baseline", both, read=Estimate(99.9, 0.01), write=Estimate(49.9, 0.01)),
        record(5, "baseline", both, read=Estimate(50.0, 0.01), write=Estimate(25.0, 0.01)),
        record(6, "search", ("write",), read=Estimate(120.0, 0.01), write=Estimate(30.0, 0.01)),
        record(7, "baseline", both, read=Estimate(50.1, 0.01), write=Estimate(25.1, 0.01)),
    ]
    anchors = [Anchor(r.middle_s, r.figures) for r in records if r.role == "baseline"]
    trials: Any = SimpleNamespace(anchors=anchors, records=records)
    told = list(strategy_input.trials_without_drift(trials))
    assert told[5].figures["write.throughput"].value == pytest.approx(60, rel=0.01)
    assert told[5].figures["read.throughput"] == told[2].figures["read.throughput"]
    assert told[5].figures["read.throughput"].value == pytest.approx(120, rel=0.01)
