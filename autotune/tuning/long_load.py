"""Long loads: the kernel grows the stripe cache under load, so the gain of the first seconds is
not that of minutes. Winner and original settings, in turn, a minute each."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from autotune.knobs.stripe_cache import StripeCacheSize
from autotune.measure.workload import Phase
from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
from autotune.problem.trial import Status
from autotune.results.proof import PROOF_BASELINE, PROOF_WINNER
from autotune.stats.verdict import Comparison, Conclusion, Verdict, compare_once
from autotune.tuning.preparation import Preparation
from autotune.tuning.remaining import WRITE_MARGIN, time_left_s
from autotune.tuning.time_left import TIME_MARGIN
from autotune.tuning.trials import Trials

SUFFIX = "-long"
GROWS = StripeCacheSize.name
"""The knob whose value the kernel changes by itself under load."""
ROOMY = 10
"""A run that has so many times as long as a long load of both sides keeps time for it."""
AT_LEAST = 0.97
"""A winner that is slower than this after a minute is looked at again, and then not kept."""


@dataclass(frozen=True)
class LongLoad:
    """What loads of so many seconds showed: by figure, the winner's value over the original one.
    `left_out`: why none was measured, where one might have told something."""

    seconds: float = 0.0
    figures: dict[str, Comparison] = field(default_factory=dict)
    left_out: str = ""

    def slower(self) -> tuple[str, float] | None:
        """The first figure that is worse in the long run."""
        for name, comparison in self.figures.items():
            if comparison.ratio < AT_LEAST or comparison.conclusion is Conclusion.WORSE:
                return name, comparison.ratio
        return None

    def overall(self, verdict: Verdict, figures: Sequence[Figure]) -> Comparison:
        """The objective with the long loads in place of the short ones."""
        total = sum(figure.weight for figure in figures)
        shares = {figure.name: figure.weight / total for figure in figures}
        centre = math.log(verdict.overall.ratio)
        variance = verdict.overall.half**2
        for name, long in self.figures.items():
            short = verdict.figures[name]
            centre += shares[name] * math.log(long.ratio / short.ratio)
            variance += (shares[name] * long.half) ** 2
        return Comparison.of(centre, math.sqrt(variance))


def long_phases(
    preparation: Preparation, winner: Setting, phases: Sequence[Phase], anyway: bool = False
) -> list[Phase]:
    """The phases that a growing stripe cache can change over a minute, of that length; with
    `anyway` also if the workload leaves them out."""
    seconds = preparation.options.workload.long_seconds or (60.0 if anyway else 0.0)
    if not seconds or winner.get(GROWS) == preparation.baseline.get(GROWS):
        return []
    return [
        phase.model_copy(
            update={"name": phase.name + SUFFIX, "min_seconds": seconds, "max_seconds": seconds}
        )
        for phase in phases
        if phase.weight and phase.load is not None and phase.load.rw == "write"
    ]


def long_seconds(preparation: Preparation, winner: Setting, phases: Sequence[Phase]) -> float:
    """What long loads of both sides take."""
    return 2 * sum(phase.max_seconds for phase in long_phases(preparation, winner, phases))


def reserved_seconds(preparation: Preparation, winner: Setting, phases: Sequence[Phase]) -> float:
    """What a search keeps free for that: nothing where time is short, since it is not worth a
    trial then, unless nothing can be kept without."""
    long_s = long_seconds(preparation, winner, phases)
    is_short = preparation.options.time_s < ROOMY * long_s
    return 0.0 if is_short and preparation.options.workload.counts != "long" else long_s


def is_time_for_long(trials: Trials, phases: Sequence[Phase]) -> bool:
    """Whether there is time for long loads of both."""
    return time_left_s(trials) >= 2 * sum(phase.max_seconds for phase in phases) * TIME_MARGIN


def may_write(trials: Trials, phases: Sequence[Phase]) -> bool:
    """Whether the write budget allows long loads of both."""
    if trials.phases.written.left is None:
        return True
    needed = 0.0
    for phase in phases:
        short = phase.name.removesuffix(SUFFIX)
        needed += trials.phases.wrote[short] * phase.max_seconds / trials.phases.seconds[short]
    return 2 * needed * WRITE_MARGIN < trials.phases.written.left


def measure_long(
    preparation: Preparation, trials: Trials, winner: Setting, phases: Sequence[Phase]
) -> LongLoad:
    """Measure both, in turn; once more the other way round if the winner looks slower and there
    is time."""
    sides: dict[str, list[dict[str, Estimate]]] = {"winner": [], "baseline": []}
    settings = {"winner": winner, "baseline": preparation.baseline}
    long = LongLoad()
    for turn in (("winner", "baseline"), ("baseline", "winner")):
        for side in turn:
            record = trials.run(f"long-{side}", settings[side], tuple(phases))
            if record.status is not Status.COMPLETE:
                return LongLoad(left_out=f"it could not be measured: {record.reason}")
            sides[side].append(record.figures)
        long = LongLoad(phases[0].max_seconds, _compared(trials, phases, sides, winner))
        if long.slower() is None or not is_time_for_long(trials, phases):
            break
    return long


def _compared(
    trials: Trials,
    phases: Sequence[Phase],
    sides: dict[str, list[dict[str, Estimate]]],
    winner: Setting,
) -> dict[str, Comparison]:
    """By the name of the short figure."""
    found = {}
    for phase in phases:
        name = f"{phase.name}.throughput"
        short = f"{phase.name.removesuffix(SUFFIX)}.throughput"
        if not all(name in each for side in sides.values() for each in side):
            continue
        repeats = [
            [
                record.figures[short]
                for record in trials.records
                if record.role == role
                and short in record.figures
                and (role != PROOF_WINNER or record.requested == winner)
            ]
            for role in (PROOF_WINNER, PROOF_BASELINE, "baseline")
        ]
        after, before = ([each[name] for each in sides[s]] for s in ("winner", "baseline"))
        found[short] = compare_once(after, before, repeats)
    return found
