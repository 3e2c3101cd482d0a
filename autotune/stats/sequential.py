"""A proof that goes on until it is clear: what each pair of measurements in turn decides. Pure.

Equal settings must not be called different more than once in twenty, however often one looks and
whatever else is tried after. So that chance is shared out beforehand: over what is proven one
after the other (`ERRORS`), and over the looks at each (`spending`).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from autotune.problem.figure import Figure
from autotune.problem.objective import Figures
from autotune.quantities import show_latency, show_times
from autotune.stats.verdict import NOTABLE, Comparison, Conclusion, Verdict

LEAST_PAIRS, MOST_PAIRS = 2, 4
ERRORS = (0.035, 0.0075, 0.0075)
"""Of the first setting that is proven, and of those that come after it failed: 0.05 in all."""
_SHARES = {1: (1.0,), 2: (0.3, 0.7), 3: (0.2, 0.5, 0.3), 4: (0.2, 0.4, 0.2, 0.2)}
_PROMISING = {1: 0.0, 2: 0.4, 3: 0.6}
"""After so many pairs, a gain that is less than this part of the interval's half will hardly be
shown by those that are left."""
SLOWER = math.log(1.05)
"""What was given and measured so much slower is not kept, however wide the interval."""
LARGE = math.log(1.1)
"""A gain that is worth a ceiling relative to the baseline not being shown to hold."""


def spending(looks: int, error: float) -> tuple[float, ...]:
    """The chance of error at each of so many looks, which are decided on beforehand."""
    return tuple(share * error for share in _SHARES[looks])


class Held(StrEnum):
    """What is known of a ceiling."""

    HOLDS = "holds"
    BROKEN = "broken"
    NOT_SHOWN = "not shown"
    """Relative to the baseline, and the noise leaves it open."""


class Step(StrEnum):
    KEEP = "keep"
    DROP = "drop"
    MORE = "more"


@dataclass(frozen=True)
class Look:
    """What a look at the pairs so far decides, and why."""

    step: Step
    reason: str


@dataclass(frozen=True)
class ProofTerms:
    """What is judged: `figures` with their limits, `what` the setting is called, `asked` the
    phases whose ceilings the user or the workload asked for (None: all), `given` if no worse is
    good enough; `compared_with` is the other side, in words."""

    figures: Sequence[Figure]
    what: str = "the best combination found"
    asked: frozenset[str | None] = frozenset()
    given: bool = False
    compared_with: str = "the original settings"


def ceilings_held(
    figures: Sequence[Figure],
    compared: Mapping[str, Comparison],
    before: Figures,
    after: Figures,
) -> dict[str, Held]:
    """What is known of each ceiling. One in ms holds by the measured value; one relative to the
    baseline by the interval of the difference, and surely where nothing can move it."""
    states = {}
    for figure in figures:
        shown = after.get(figure.name, before.get(figure.name))
        if not figure.limited or shown is None:
            continue
        comparison = compared.get(figure.name)
        if figure.ratio is None:
            over = shown.value > (figure.ceiling or math.inf)
            states[figure.name] = Held.BROKEN if over else Held.HOLDS
        elif comparison is None or comparison.high <= figure.ratio:
            states[figure.name] = Held.HOLDS
        elif comparison.low > figure.ratio:
            states[figure.name] = Held.BROKEN
        else:
            states[figure.name] = Held.NOT_SHOWN
    return states


def look(
    terms: ProofTerms,
    verdict: Verdict,
    before: Figures,
    after: Figures,
    pairs: int,
    planned: int,
) -> Look:
    """What so many pairs of those planned decide: keep, drop, or measure another. Nothing is kept
    after one pair where more were planned: a drift that falls out of two may look like a gain."""
    last = pairs >= planned
    seen = _look(terms, verdict, before, after, pairs, last)
    if seen.step is Step.KEEP and pairs < min(LEAST_PAIRS, planned):
        return Look(Step.MORE, "a drift may look like this, and falls out of two pairs")
    return seen


def _look(
    terms: ProofTerms,
    verdict: Verdict,
    before: Figures,
    after: Figures,
    pairs: int,
    last: bool,
) -> Look:
    held = ceilings_held(terms.figures, verdict.figures, before, after)
    moved = [f for f in terms.figures if f.limited and f.name in verdict.figures]
    broken = [f for f in moved if held.get(f.name) is Held.BROKEN]
    if broken:
        if not last and not any(_surely(f, after) for f in broken):
            return Look(Step.MORE, f"whether {broken[0].name} holds is not clear")
        return Look(Step.DROP, _too_slow(terms, broken[0], verdict, after))
    if verdict.overall.conclusion is Conclusion.BETTER:
        return _better(terms, verdict, moved, last)
    over = [f for f in moved if before[f.name].value > (f.ceiling or math.inf)]
    calmer = [f for f in over if verdict.figures[f.name].conclusion is Conclusion.BETTER]
    # A ceiling that was asked for is a condition, kept at whatever cost in speed, unless another
    # one is broken all the same.
    slower = verdict.overall.conclusion is Conclusion.WORSE
    condition = Held.BROKEN not in held.values()
    mended = [f for f in calmer if not slower or (condition and terms.asked & {None, f.phase})]
    if mended:
        but = "slower, but " if slower else ""
        names = " and ".join(figure.name for figure in mended)
        ceilings = "ceiling" if len(mended) == 1 else "ceilings"
        said = f"{but}it holds the {ceilings} for {names}, which {terms.compared_with} break"
        return Look(Step.KEEP, said)
    if terms.given and last:
        return _no_worse(terms, verdict, moved)
    return _not_better(terms, verdict, pairs, last, bool(over) and (condition or not slower))


def _too_slow(terms: ProofTerms, figure: Figure, verdict: Verdict, after: Figures) -> str:
    """Which ceiling does not hold, and by how much."""
    said = f"{terms.what} broke the ceiling for {figure.name} when measured in turn: "
    if figure.ratio is None:
        limit = figure.ceiling or math.inf
        shown = show_latency(after[figure.name].value)
        return f"{said}{shown} where {show_latency(limit)} is allowed"
    change = verdict.figures[figure.name].ratio
    return f"{said}×{change:.2f} of what it was, where ×{figure.ratio:.2f} is allowed"


def _no_worse(terms: ProofTerms, verdict: Verdict, moved: Sequence[Figure]) -> Look:
    """Of what was given and is not better: whether it may stay."""
    for figure in moved:
        if figure.ratio is not None and verdict.figures[figure.name].ratio > figure.ratio:
            reason = f"{terms.what} is no faster, and {figure.name} looks worse"
            return Look(Step.DROP, reason)
    overall = verdict.overall
    if overall.conclusion is Conclusion.WORSE:
        return Look(Step.DROP, "worse beyond noise")
    if math.log(overall.ratio) < -SLOWER:
        shown = f"×{overall.ratio:.2f} ({overall.low:.2f} to {overall.high:.2f})"
        return Look(Step.DROP, f"{terms.what} looks slower, which may be noise: {shown}")
    return Look(Step.KEEP, f"no worse than {terms.compared_with}")


def _not_better(terms: ProofTerms, verdict: Verdict, pairs: int, last: bool, over: bool) -> Look:
    """Of what is not shown to be better: whether it is worth going on. `over`: whether the
    original settings break a ceiling, which it may hold."""
    overall = verdict.overall
    if over and not last:
        return Look(Step.MORE, "whether it is calmer is not clear")
    if overall.conclusion is Conclusion.WORSE:
        return Look(Step.DROP, f"{terms.what} is slower when measured in turn")
    least = max(NOTABLE, _PROMISING.get(pairs, 1.0) * overall.half)
    promising = math.log(overall.ratio) > least
    if last or not (promising or terms.given):
        shown = f"×{overall.ratio:.2f} ({overall.low:.2f} to {overall.high:.2f})"
        turns = f"measured in turn {show_times(pairs)}"
        reason = f"{terms.what} was not shown to be better: {shown}, {turns}"
        if promising and pairs < MOST_PAIRS and not terms.given:
            reason += ", with no time left for more"
        return Look(Step.DROP, reason)
    return Look(Step.MORE, "the difference is not clear yet")


def _surely(figure: Figure, after: Figures) -> bool:
    """Whether what is measured is over the limit by more than its noise."""
    if figure.ratio is not None:
        return True
    return after[figure.name].interval[0] > (figure.ceiling or math.inf)


def _better(terms: ProofTerms, verdict: Verdict, moved: Sequence[Figure], last: bool) -> Look:
    """Of what is better beyond noise and breaks no ceiling for sure."""
    better = Look(Step.KEEP, "better beyond noise")
    for figure in moved:
        comparison = verdict.figures[figure.name]
        if figure.ratio is not None and comparison.ratio > figure.ratio:
            if not last:
                return Look(Step.MORE, f"whether {figure.name} holds is not clear")
            beyond = math.log(comparison.ratio / figure.ratio)
            if math.log(verdict.overall.ratio) < max(LARGE, beyond):
                reason = (
                    f"{terms.what} is faster, but {figure.name} looks worse by more than that: "
                    f"×{comparison.ratio:.2f} where ×{figure.ratio:.2f} is allowed"
                )
                return Look(Step.DROP, reason)
    return better


Sides = Literal["winner", "baseline"]


def order(pair: int) -> tuple[Sides, Sides]:
    """Which side comes first in a pair: in turn, so that a drift falls out."""
    return ("winner", "baseline") if pair % 2 == 0 else ("baseline", "winner")
