"""How long a run will probably go on, for those who wait. Pure.

What a proof will show cannot be foreseen: after one of two pairs a run may be over, or go on with
two more proofs. So it is told as the least and the most that most runs take. A search that ends
since nothing else promises enough is shorter than either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from statistics import fmean, median

from autotune.measure.workload import Phase
from autotune.results.proof import PROOF_ROLES
from autotune.stats.sequential import LEAST_PAIRS
from autotune.store import TrialRecord
from autotune.tuning.preparation import (
    BASELINE_EVERY,
    BASELINE_TRIALS,
    DOUBTS,
    Preparation,
)
from autotune.tuning.relevance import is_movable

TIME_MARGIN = 1.1
"""No two trials take the same time."""
LIKELY_CHECKS = 1
"""Of the trials of whether each change is needed. There are none to DOUBTS: of two runs in the lab,
one had none and one had four."""
SPREAD = 1.15
"""A search takes at most so many times as long, or as short, as its last trials suggest. This and
ANOTHER come from simulated runs (`tests/unit/simulated_time.py`)."""
ANOTHER = 6
"""How many trials of what a setting can move a further proof takes, with what comes with it."""
RECENT = 5
"""How many of the last trials say how long the next ones take."""


@dataclass(frozen=True)
class NextProof:
    """The proof that is expected: of these phases, of none while nothing looks better. `long_s` is
    what a long load of both sides takes, 0 if there is none; `kept_s` what a search usually keeps
    for everything, since it does not know yet what will be left out of its best setting. `after`
    is the number of trials before it; `others` says whether more proofs may follow."""

    phases: tuple[Phase, ...]
    long_s: float = 0.0
    kept_s: float = 0.0
    after: int = 0
    others: bool = True


@dataclass(frozen=True)
class RunPlan:
    """What a run still does. All in seconds: `whole_s` is a trial of every phase, `moved_s` one
    of those that a setting can move, `proof_s` one of the proof; `long_s` is a long load of both
    sides. `role` is that of the trial that begins now; a search keeps `kept_s` for the
    proof."""

    trials: int
    whole_s: float
    moved_s: float
    proof_s: float
    long_s: float
    role: str = "search"
    kept_s: float = 0.0
    proof_after: int = 0
    """The trials before the proof that is under way."""
    others: bool = False
    """Whether more proofs may follow it."""
    baseline_every: int = BASELINE_EVERY
    """The trials after which the baseline comes back."""


@dataclass(frozen=True)
class TimeLeft:
    """How long a run probably goes on, in seconds: between these two in most runs."""

    least_s: float
    most_s: float


def movable(preparation: Preparation) -> tuple[Phase, ...]:
    """The phases that a setting can move."""
    return tuple(p for p in preparation.phases if is_movable(preparation.knobs, p))


def plan_of(
    preparation: Preparation,
    seconds: Mapping[str, float],
    proof: NextProof,
    role: str,
    baseline_every: int,
) -> RunPlan:
    """The plan of a run whose phases take so many `seconds`, by name. `role` is that of the trial
    that begins now."""
    options = preparation.options
    searches = options.given is None

    def of(phases: Sequence[Phase]) -> float:
        return sum(seconds[phase.name] for phase in phases)

    return RunPlan(
        trials=options.trials if searches else 0,
        whole_s=of(preparation.phases),
        moved_s=of(movable(preparation)),
        proof_s=of(proof.phases),
        long_s=proof.long_s if searches else 0.0,
        role=role,
        kept_s=proof.kept_s,
        proof_after=proof.after,
        others=proof.others and searches,
        baseline_every=baseline_every,
    )


def time_left(plan: RunPlan, records: Sequence[TrialRecord], allowed_s: float) -> TimeLeft:
    """What is left as the run stands between two trials; `allowed_s` are left of its time.

    The search goes on as it went. What follows depends on what the proofs will show: a first one
    may fail in its first pair, or pass, and others and long loads may follow.
    """
    roles = [record.role for record in records]
    gap_s = _gap_s(records)
    pair_s = 2 * (plan.proof_s + gap_s)
    another_s = ANOTHER * (plan.moved_s + gap_s) if plan.others else 0.0
    # What is begun is ended, whatever time is left.
    if plan.role.startswith("long-"):
        loaded = sum(role.startswith("long-") for role in roles[plan.proof_after :])
        least_s = plan.long_s / 2 * (2 - loaded % 2)
        # Both sides once more, if the winner looks slower.
        again_s = plan.long_s if loaded < 2 else 0.0
        return TimeLeft(least_s, max(least_s, min(least_s + again_s + another_s, allowed_s)))
    if plan.role in PROOF_ROLES:
        least_s = _proof_left_s(plan, roles, gap_s, allowed_s)
        # What is given is measured in so many pairs, and no more.
        again_s = pair_s if plan.trials else 0.0
        most_s = least_s + again_s + plan.long_s + another_s
        return TimeLeft(least_s, max(least_s, min(most_s, allowed_s)))
    search_s = _search_left_s(plan, records, gap_s, allowed_s)
    most_s = search_s * SPREAD + LEAST_PAIRS * pair_s + plan.long_s + another_s
    if plan.trials:
        # The last trials may measure less than all, and it may end a trial sooner.
        least_s = max(0.0, search_s - plan.moved_s) / SPREAD + pair_s
    else:
        least_s = search_s / SPREAD + LEAST_PAIRS * pair_s
    allowed_s = max(0.0, allowed_s)
    return TimeLeft(min(least_s, allowed_s), min(most_s, allowed_s))


def _search_left_s(
    plan: RunPlan, records: Sequence[TrialRecord], gap_s: float, allowed_s: float
) -> float:
    """What the search still takes, and the trials of whether each change is needed."""
    roles = [record.role for record in records]
    searched = [record.seconds for record in records if record.role == "search"]
    trial_s = fmean(searched[-RECENT:]) if searched else plan.moved_s
    to_search = max(0, plan.trials - len(searched))
    # They measure what the proof does.
    checks_s = _checks_left(plan, roles) * ((plan.proof_s or plan.moved_s) + gap_s)
    if plan.role == "check":
        # The search is over, for whatever reason.
        return checks_s
    last = max((i for i, role in enumerate(roles) if role == "baseline"), default=0)
    again = (roles[last:].count("search") + to_search) // plan.baseline_every
    baselines = max(0, BASELINE_TRIALS - roles.count("baseline")) + again
    if plan.role == "baseline":
        # It comes back at the end of a search, too.
        baselines = max(1, baselines)
    wanted_s = baselines * plan.whole_s + to_search * (trial_s + gap_s) + checks_s
    # A search that its time ends keeps some for the proof, and half a trial is too short for one.
    kept_s = plan.kept_s or 2 * LEAST_PAIRS * (plan.proof_s + gap_s) + plan.long_s
    return min(wanted_s, max(0.0, allowed_s - kept_s - trial_s / 2 * TIME_MARGIN))


def _proof_left_s(plan: RunPlan, roles: Sequence[str], gap_s: float, allowed_s: float) -> float:
    """What a proof takes that is clear after the least pairs, as most are; and else the pair that
    is begun."""
    own = roles[plan.proof_after :]
    proven = sum(1 for _ in takewhile(PROOF_ROLES.__contains__, reversed(own)))
    begun = proven + 2 - proven % 2
    # Another one only where it fits.
    room_s = allowed_s - (begun - proven) * plan.proof_s
    fit = begun + 2 * max(0, int(room_s / (2 * plan.proof_s * TIME_MARGIN)))
    wanted = max(begun, min(2 * LEAST_PAIRS, fit))
    return (wanted - proven) * (plan.proof_s + gap_s)


def _checks_left(plan: RunPlan, roles: Sequence[str]) -> float:
    """How many trials will probably be made of whether each change is needed, the one that begins
    now among them."""
    done = sum(1 for _ in takewhile("check".__eq__, reversed(roles)))
    if plan.role == "check":
        return 1 + (DOUBTS - 1 - done) / 2
    return LIKELY_CHECKS if plan.trials and not done else 0


def _gap_s(records: Sequence[TrialRecord]) -> float:
    """What passes from the end of a trial to the start of the next, to choose it; the pause before
    a run was resumed is none."""
    last = records[-RECENT:]
    gaps = [
        (after.started - before.started).total_seconds() - before.seconds
        for before, after in pairwise(last)
    ]
    return max(0.0, median(gaps)) if gaps else 0.0
