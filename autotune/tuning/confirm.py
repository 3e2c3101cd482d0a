"""Whether what a search found is better: winner and original settings measured in turn."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.setting import Setting
from autotune.problem.trial import Status
from autotune.stats.drift import largest_drifts, without_drift
from autotune.stats.verdict import Conclusion, Verdict, judge
from autotune.tuning.prepare import BASELINE_TRIALS, CONFIRM_ORDER, Preparation
from autotune.tuning.trials import Reporter, Trials


@dataclass(frozen=True)
class Decision:
    """Whether to keep the winner and why; both sides' figures, as measured in turn."""

    keep: bool
    reason: str
    verdict: Verdict | None
    before: Figures
    after: Figures
    over: bool = False
    """Whether a broken ceiling is why not; the next best may hold it."""


def confirm(
    preparation: Preparation,
    trials: Trials,
    winner: Setting,
    figures: list[Figure],
    reporter: Reporter,
) -> Decision:
    """Measure the winner and the baseline in turn, in the phases where they can differ at all.

    A winner of a search is kept if it is better, one that was given if it is no worse.
    """
    given = preparation.options.given is not None
    what = "the profile" if given else "the winner"
    reporter.step(f"Measuring {what} and the original settings, in turn")
    baseline = preparation.baseline
    phases = tuple(
        p for p in preparation.phases if trials.relevant(p, winner) != trials.relevant(p, baseline)
    )
    if given and not any(phase.weight for phase in phases):
        reason = "nothing that counts in the workload can differ, so nothing can be shown"
        return Decision(False, reason, None, {}, {})
    sides: dict[str, list[Figures]] = {"winner": [], "baseline": []}
    anchors = trials.anchors
    earlier = [without_drift(anchor.figures, anchor.time_s, anchors) for anchor in anchors]
    for side in CONFIRM_ORDER:
        setting = winner if side == "winner" else baseline
        record = trials.run(f"confirm-{side}", setting, phases)
        if record.status is not Status.COMPLETE:
            return Decision(False, f"{what} did not apply: {record.reason}", None, {}, {})
        sides[side].append(record.figures)
    # After a drift only the first two are neighbours.
    alike = anchors[:BASELINE_TRIALS] if largest_drifts(anchors) else anchors
    before_that = [anchor.figures for anchor in alike]
    verdict = judge(figures, sides["winner"], sides["baseline"], before_that)
    # What the winner cannot move was measured before.
    after, before = mean(sides["winner"]), {**mean(earlier), **mean(sides["baseline"])}
    names = {phase.name for phase in phases}
    unknown = [
        f.name
        for f in figures
        if f.phase in names
        and (f.weight > 0 or f.limited)
        and not (f.name in after and f.name in before)
    ]
    if unknown:
        reason = f"{unknown[0]} could not be measured on both sides, so nothing is claimed"
        return Decision(False, reason, verdict, before, after)
    broken = broken_ceilings(figures, after, before)
    if broken:
        reason = f"{what} broke the ceiling for {broken[0].name} when measured in turn"
        return Decision(False, reason, verdict, before, after, over=True)
    keep, reason = _verdict(preparation, verdict, figures, before)
    return Decision(keep, reason, verdict, before, after)


def _verdict(
    preparation: Preparation, verdict: Verdict, figures: list[Figure], before: Figures
) -> tuple[bool, str]:
    """Whether to keep what holds its ceilings, and why."""
    if verdict.overall.conclusion is Conclusion.BETTER:
        return True, "better beyond noise"
    calmer = [
        f
        for f in broken_ceilings(figures, before, before)
        if verdict.figures[f.name].conclusion is Conclusion.BETTER
    ]
    # A ceiling that was asked for is a condition, kept at whatever cost in speed; not so one that
    # only says "no worse than now".
    asked = {ceiling.phase for ceiling in preparation.options.ceilings}
    slower = verdict.overall.conclusion is Conclusion.WORSE
    if any(not slower or None in asked or figure.phase in asked for figure in calmer):
        but = "slower, but " if slower else ""
        reason = f"{but}it holds the ceilings, which the original settings break"
        return True, reason
    if preparation.options.given is not None:
        return not slower, (
            "worse beyond noise" if slower else "no worse than the original settings"
        )
    reason = "the best found does not differ from the original settings beyond noise"
    return False, reason


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
