"""What was measured in turn, as the run said it, or would have: its proof allows for having looked
after each pair, which a mean of the trials does not show. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from autotune.problem.figure import SPREADS_95, Estimate, Figure
from autotune.problem.profile import Evidence
from autotune.problem.setting import setting_key
from autotune.problem.trial import Status
from autotune.results.proof import PROOF_ROLES, proofs
from autotune.stats.drift import Anchor, neighbours
from autotune.stats.sequential import ERRORS, MOST_PAIRS, spending
from autotune.stats.verdict import judge
from autotune.store import TrialRecord

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


def of_trials(trials: Sequence[TrialRecord], figures: Sequence[Figure]) -> dict[object, InTurn]:
    """By the setting's key, from the trials of a run that was ended before it said anything. The
    intervals are those of a look after which it could have gone on."""
    done = [t for t in trials if t.status is Status.COMPLETE]
    anchors = [Anchor(t.middle_s, t.figures) for t in done if t.role == "baseline"]
    past = [anchor.figures for anchor in neighbours(anchors)]
    looks = spending(MOST_PAIRS, ERRORS[0])
    found: dict[object, InTurn] = {}
    for proof in proofs(trials):
        turns = [t for t in done if t.number in proof.trials]
        winner, baseline = ([t.figures for t in turns if t.role == role] for role in PROOF_ROLES)
        error = looks[min(len(winner), MOST_PAIRS) - 1]
        verdict = judge(figures, winner, baseline, past, error=error)
        changes = {name: asdict(each) for name, each in verdict.figures.items()}
        found[setting_key(proof.setting)] = _in_turn(asdict(verdict.overall), changes, figures)
    return found


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
