"""What is left of the time and of the write budget, in trials and in proofs."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from autotune.measure.workload import Phase
from autotune.quantities import show_seconds
from autotune.tuning.preparation import BASELINE_TRIALS, Preparation
from autotune.tuning.relevance import is_movable
from autotune.tuning.time_left import TIME_MARGIN
from autotune.tuning.trials import Trials

WRITE_MARGIN = 1.5
"""A faster setting writes more in the same time than any before it: by so much at most, hopefully,
and if not, the measurement is ended at the budget."""


@dataclass(frozen=True)
class Stop:
    """Why a search ends, or cannot go on, and the option of `run` that would allow more, if one
    would. False if nothing stops it."""

    text: str = ""
    option: Literal["", "time", "trials", "write-budget"] = ""

    def __bool__(self) -> bool:
        return bool(self.text)

    def __str__(self) -> str:
        return self.text


def time_left_s(trials: Trials) -> float:
    return trials.deadline - time.monotonic()


def pairs_left(trials: Trials, phases: Sequence[str], beside_s: float = 0.0) -> int:
    """How many pairs of these phases can still be measured, with `beside_s` for something else."""
    pair_s = 2 * sum(trials.phases.seconds[name] for name in phases) * TIME_MARGIN
    left_s = time_left_s(trials) - beside_s
    most = math.floor(left_s / pair_s) if pair_s > 0 else 0
    wrote = 2 * sum(trials.phases.wrote[name] for name in phases) * WRITE_MARGIN
    left = trials.phases.written.left
    if left is not None and wrote:
        most = min(most, math.floor(left / wrote))
    return most


def proof_seconds(trials: Trials, phases: Sequence[Phase], pairs: int) -> float:
    """What so many pairs of these phases take, with some room."""
    return 2 * pairs * sum(trials.phases.seconds[phase.name] for phase in phases) * TIME_MARGIN


def lacking(
    preparation: Preparation,
    trials: Trials,
    pairs: int,
    long_s: float = 0.0,
    proof: Sequence[Phase] | None = None,
) -> Stop:
    """What there is too little of for another trial and a proof of so many pairs.
    `proof`: the phases that a proof would measure, if not all that a setting can move."""
    trial = [phase.name for phase in preparation.phases if is_movable(preparation.knobs, phase)]
    names = trial if proof is None else [phase.name for phase in proof]
    trial_s = sum(trials.phases.seconds[name] for name in trial)
    pair_s = 2 * sum(trials.phases.seconds[name] for name in names)
    if (trial_s + pairs * pair_s) * TIME_MARGIN + long_s > time_left_s(trials):
        whole_s = sum(trials.phases.seconds[phase.name] for phase in preparation.phases)
        least_s = (whole_s * (1 + BASELINE_TRIALS) + trial_s + pairs * pair_s) * TIME_MARGIN
        takes = f"a trial takes {show_seconds(trial_s)} here"
        if trials.count("search"):
            proof_s = pairs * pair_s + long_s
            text = (
                f"there was no time for another trial and a proof: {takes}, and a proof up to "
                f"{show_seconds(proof_s)}"
            )
            return Stop(text, "time")
        return Stop(
            f"{takes}, so there is no time to try and prove anything; allow "
            f"{show_seconds(least_s)} or more (--time)",
            "time",
        )
    left = trials.phases.written.left
    wrote = sum(trials.phases.wrote[name] for name in trial)
    wrote += 2 * pairs * sum(trials.phases.wrote[name] for name in names)
    if left is not None and wrote * WRITE_MARGIN > left:
        text = "the write budget allows no other trial; allow more (--write-budget)"
        return Stop(text, "write-budget")
    return Stop()
