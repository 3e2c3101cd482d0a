"""What was measured in turn, as the run said it: its proof allows for having looked after each
pair, which the trials alone do not show. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotune.problem.figure import SPREADS_95, Estimate, Figure
from autotune.problem.profile import Evidence
from autotune.problem.setting import setting_key

Change = Mapping[str, Any]
"""`ratio`, `low`, `high` and `conclusion` of a figure."""


@dataclass(frozen=True)
class InTurn:
    """The gain of a setting, its p99 (the mean of all that are limited), and the changes of
    figures by name, each with the interval of its proof."""

    gain: Estimate
    latency: Estimate
    changes: Mapping[str, Change]


def of_run(said: Mapping[str, Any] | None, figures: Sequence[Figure]) -> dict[object, InTurn]:
    """By the setting's key, from what a run said at its end; older runs have said less."""
    return {
        setting_key(setting): _in_turn(gain, changes, figures)
        for setting, gain, changes in _proofs(said or {})
        if gain
    }


def of_evidence(evidence: Evidence, figures: Sequence[Figure]) -> InTurn:
    """From what a profile has."""
    gain = {"ratio": evidence.gain, "low": evidence.low, "high": evidence.high}
    changes = {name: each.model_dump() for name, each in evidence.figures.items()}
    return _in_turn(gain, changes, figures)


def _proofs(
    said: Mapping[str, Any],
) -> Iterator[tuple[dict[str, Any], Change | None, dict[str, Change]]]:
    for each in said.get("refused", []):
        yield each["setting"], each["gain"], each["figures"]
    changes = {n: each["change"] for n, each in said.get("figures", {}).items() if each["change"]}
    yield said.get("proposed", {}), said.get("gain"), changes


def _in_turn(gain: Change, changes: Mapping[str, Change], figures: Sequence[Figure]) -> InTurn:
    tails = [figure.name for figure in figures if figure.limited]
    # What was not measured again, nothing could move.
    ratios = [_estimate(changes[name]) for name in tails if name in changes]
    log = sum(math.log(each.value) for each in ratios) / max(len(tails), 1)
    spread = math.sqrt(sum(each.spread**2 for each in ratios)) / max(len(tails), 1)
    return InTurn(_estimate(gain), Estimate(math.exp(log), spread), changes)


def _estimate(change: Change) -> Estimate:
    low, high = max(change["low"], 1e-9), max(change["high"], 1e-9)
    return Estimate(change["ratio"], math.log(high / low) / 2 / SPREADS_95)
