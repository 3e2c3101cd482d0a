"""What the original settings and the proof of a run show: the numbers of every report. Pure.

What was measured in turn for the answer counts alone, on both sides: those measurements are
neighbours in time. What was not measured then, or in one pair only, is what the original settings
showed through the run, without drift.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures
from autotune.problem.setting import Setting, setting_key
from autotune.problem.trial import Status
from autotune.stats.drift import Anchor, without_drift
from autotune.stats.sequential import LEAST_PAIRS, order
from autotune.store import TrialRecord

PROOF_WINNER, PROOF_BASELINE = PROOF_ROLES = ("confirm-winner", "confirm-baseline")
"""The roles of the trials in turn."""
LONG_ROLES = ("long-winner", "long-baseline")
"""Those of the long load that follows them."""


@dataclass(frozen=True)
class Proof:
    """A setting and the original settings, measured in turn."""

    setting: Setting
    before: Figures
    after: Figures
    trials: tuple[int, ...]
    """The numbers of the trials that it is made of."""


def is_of_proof(trial: TrialRecord) -> bool:
    """Whether a trial belongs to a proof, and not to the search."""
    return trial.role in (*PROOF_ROLES, *LONG_ROLES)


def proofs(trials: Sequence[TrialRecord]) -> list[Proof]:
    """What was measured in turn, kept or not, in the order of time."""
    in_turn = [t for t in trials if t.role in PROOF_ROLES and t.status is Status.COMPLETE]
    found: list[Proof] = []
    while in_turn:
        proof = _last(in_turn)
        if proof is None:
            # A run was cut before the other half of this pair.
            in_turn.pop()
            continue
        found.insert(0, proof)
        in_turn = [trial for trial in in_turn if trial.number < proof.trials[0]]
    return found


def proof_of(trials: Sequence[TrialRecord], answer: Setting | None) -> Proof | None:
    """The newest of the answer, or of all if there is none (None); None if no pair was measured in
    full."""
    found = proofs(trials)
    own = [p for p in found if answer is not None and setting_key(p.setting) == setting_key(answer)]
    return next(reversed(own or found), None)


def _last(in_turn: Sequence[TrialRecord]) -> Proof | None:
    """The newest. What a run measured before it was cut is not of the same proof: the original
    settings are measured before it goes on."""
    for start in range(len(in_turn) - 1):
        turns = in_turn[start:]
        if turns[-1].number - turns[0].number != len(turns) - 1:
            continue
        pairs = len(turns) // 2
        roles = [f"confirm-{side}" for pair in range(pairs + 1) for side in order(pair)]
        winners = {setting_key(t.requested) for t in turns if t.role == PROOF_WINNER}
        if len(winners) == 1 and [t.role for t in turns] == roles[: len(turns)]:
            whole = turns[: 2 * pairs]
            after, before = (
                mean([t.figures for t in whole if t.role == role]) for role in PROOF_ROLES
            )
            return Proof(turns[0].requested, before, after, tuple(t.number for t in whole))
    return None


def original(trials: Sequence[TrialRecord], answer: Setting | None = None) -> dict[str, Estimate]:
    """What the original settings show; empty if they were never measured in full. `answer`: what
    the run keeps, if it is known and anything."""
    proof = proof_of(trials, answer)
    alone = proof is not None and len(proof.trials) >= 2 * LEAST_PAIRS
    # One pair says less of the milliseconds than all measurements together.
    roles = ("baseline",) if alone else ("baseline", PROOF_BASELINE)
    baseline = [t for t in trials if t.role in roles and t.status is Status.COMPLETE]
    anchors = [Anchor(t.middle_s, t.figures) for t in baseline]
    # What was carried over from one trial to another counts once.
    shown = [without_drift(fresh(t), t.middle_s, anchors) for t in baseline]
    names = dict.fromkeys(name for figures in shown for name in figures)
    return {
        **{n: mean([{n: each[n]} for each in shown if n in each])[n] for n in names},
        **(proof.before if proof and alone else {}),
    }


def fresh(trial: TrialRecord) -> dict[str, Estimate]:
    """The figures that a trial measured itself."""
    return {n: e for n, e in trial.figures.items() if n.partition(".")[0] in trial.measured}


def mean(measured: Sequence[Figures]) -> dict[str, Estimate]:
    """Each figure's geometric mean over repeated measurements that all have it. The spread is
    what the repeats show, and no less than what the spreads within them make of the mean."""
    means = {}
    for name in measured[0]:
        if not all(name in m for m in measured):
            continue
        logs = [math.log(m[name].value) for m in measured]
        within = math.sqrt(sum(m[name].spread ** 2 for m in measured)) / len(logs)
        between = stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
        means[name] = Estimate(math.exp(fmean(logs)), max(within, between))
    return means
