"""How long a run will probably go on, for those who wait. Pure.

What ends a search for another reason (nothing promises enough, a proof that fails) cannot be
foreseen, so the truth may be less or more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from autotune.measure.workload import Phase
from autotune.results.proof import BASELINE, WINNER
from autotune.store import TrialRecord
from autotune.tuning.prepare import BASELINE_TRIALS, Preparation
from autotune.tuning.relevance import is_movable

LIKELY_PAIRS = 2
"""Most proofs are clear then."""
TIME_MARGIN = 1.1
"""As in `remaining`: a pair that would fit but just is not begun."""
RECENT = 5
"""So many of the last trials say how long the next ones take."""


@dataclass(frozen=True)
class Plan:
    """What a run does at most. All in seconds: `whole_s` is a trial of every phase, `moved_s` one
    of those that a setting can move, or that the proof under way measures; `long_s` is a long load
    of both sides."""

    trials: int
    whole_s: float
    moved_s: float
    long_s: float
    proving: bool = False


def plan_of(
    preparation: Preparation,
    seconds: Mapping[str, float],
    long_s: float,
    proof: Sequence[Phase] = (),
) -> Plan:
    """The plan of a run whose phases take so many `seconds`, by name. `proof`: the phases of the
    proof under way."""
    phases, options = preparation.phases, preparation.options
    moved = proof or [p for p in phases if is_movable(preparation.knobs, p)]
    return Plan(
        options.trials if options.given is None else 0,
        sum(seconds[phase.name] for phase in phases),
        sum(seconds[phase.name] for phase in moved),
        long_s,
        bool(proof),
    )


def expected_left_s(plan: Plan, records: Sequence[TrialRecord], allowed_s: float) -> float:
    """The seconds until the end as the run stands between two trials; `allowed_s` are left of its
    time."""
    roles = [record.role for record in records]
    proven = roles.count(WINNER) + roles.count(BASELINE)
    long_s = 0.0 if any(role.startswith("long-") for role in roles) else plan.long_s
    gap_s = _gap_s(records)
    if plan.proving or proven:
        # A pair that was begun is ended; another one only where it fits.
        begun = proven + proven % 2
        room_s = allowed_s - (begun - proven) * plan.moved_s
        fit = begun + 2 * max(0, int(room_s / (2 * plan.moved_s * TIME_MARGIN)))
        wanted = max(begun, min(2 * LIKELY_PAIRS, fit))
        return min(allowed_s, (wanted - proven) * (plan.moved_s + gap_s) + long_s)
    searched = [record.seconds for record in records if record.role == "search"]
    trial_s = fmean(searched[-RECENT:]) if searched else plan.moved_s
    proof_s = 2 * LIKELY_PAIRS * (plan.moved_s + gap_s) + long_s
    baselines = max(0, BASELINE_TRIALS - roles.count("baseline"))
    search_s = max(0, plan.trials - len(searched)) * (trial_s + gap_s)
    # A search that its time ends keeps more of it for the proof than most need: three runs of 8
    # minutes in the lab left 20, 39 and 50 s, at trials of 53, 37 and 30 s.
    return min(baselines * plan.whole_s + search_s + proof_s, max(0.0, allowed_s - trial_s))


def _gap_s(records: Sequence[TrialRecord]) -> float:
    """What passes from the end of a trial to the start of the next, to choose it."""
    last = records[-RECENT:]
    gaps = [
        (after.started - before.started).total_seconds() - before.seconds
        for before, after in pairwise(last)
    ]
    return max(0.0, fmean(gaps)) if gaps else 0.0
