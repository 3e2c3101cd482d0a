"""Is the winner better than the baseline, beyond noise? Pure."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from autotune.problem.figure import Estimate, Figure
from autotune.problem.objective import Figures
from autotune.stats.batch_means import CONFIDENCE, MIN_BATCHES, student_t

NOTABLE = math.log(1.01)
"""Less than this is no difference to anybody, however certain."""
ERROR = 1 - CONFIDENCE
"""How often equal settings may be called different by chance."""
BLIND = 3.0
"""Where no measurement was repeated, the noise may be so many times what varies within each."""


class Conclusion(StrEnum):
    BETTER = "better"
    SAME = "no difference"
    WORSE = "worse"


@dataclass(frozen=True)
class Comparison:
    """The winner's value over the baseline's, with its 95 % interval and what follows."""

    ratio: float
    low: float
    high: float
    conclusion: Conclusion

    @classmethod
    def of(cls, centre: float, half: float, higher_is_better: bool = True) -> "Comparison":
        """From the middle of the interval and its half, both as logarithms."""
        low, high = centre - half, centre + half
        conclusion = Conclusion.SAME
        if low > 0 and centre > NOTABLE:
            conclusion = Conclusion.BETTER if higher_is_better else Conclusion.WORSE
        elif high < 0 and centre < -NOTABLE:
            conclusion = Conclusion.WORSE if higher_is_better else Conclusion.BETTER
        return cls(math.exp(centre), math.exp(low), math.exp(high), conclusion)

    @property
    def half(self) -> float:
        """Half of the interval, as a logarithm."""
        return math.log(self.high / self.low) / 2


@dataclass(frozen=True)
class Verdict:
    """`overall` is the objective; `figures` are by name, only those measured on both sides."""

    overall: Comparison
    figures: dict[str, Comparison]


def _compare(
    pairs: Sequence[float],
    groups: Sequence[Sequence[float]],
    spread: float,
    higher_is_better: bool,
    error: float,
) -> Comparison:
    """`pairs`: log ratios, one each pair. `groups`: logs of repeated measurements of one setting
    each, which tell the noise. `spread`: the noise within a measurement, as all that are paired
    show it together, each in MIN_BATCHES batches or more."""
    centre = sum(pairs) / len(pairs)
    degrees = sum(len(group) - 1 for group in groups)
    squares = sum((x - sum(g) / len(g)) ** 2 for g in groups for x in g)
    inner = 2 * len(pairs) * (MIN_BATCHES - 1)
    both = degrees + inner
    together = student_t(both, error) * math.sqrt((squares + inner * spread**2) / both)
    if degrees:
        alone = student_t(degrees, error) * math.sqrt(squares / degrees)
    else:
        alone = together * BLIND
    half = max(alone, together) * math.sqrt(2 / len(pairs))
    return Comparison.of(centre, half, higher_is_better)


def judge(
    figures: Sequence[Figure],
    winner: Sequence[Figures],
    baseline: Sequence[Figures],
    earlier: Sequence[Figures] = (),
    known: Sequence[Figures] = (),
    error: float = ERROR,
) -> Verdict:
    """Compare measurements taken in turn: `winner[i]` beside `baseline[i]`. Equal settings are
    called different at most as often as `error`, which is what the intervals leave out.

    Pairs that were neighbours in time are subtracted, so that a drift of the array falls out.
    The noise is pooled from all repeats of the same setting: both sides, and `earlier`
    measurements of the baseline, which agree with each other but need not with those in turn.
    Repeats may agree by luck, so the interval is the wider of what they give alone and what they
    give pooled with the spreads within the measurements. A figure that the winner's knobs cannot
    move is not measured again, and is taken to be equal in the objective.

    A first pair has no repeats of its own. Its noise is how far it is from what both settings
    showed before it (`known` for the winner's), so a drift since then only widens the interval.
    """
    compared: dict[str, Comparison] = {}
    both = [f for f in figures if all(f.name in m for m in (*winner, *baseline))]
    for figure in both:
        name = figure.name
        after, before = ([math.log(m[name].value) for m in side] for side in (winner, baseline))
        past = [math.log(m[name].value) for m in earlier if name in m]
        spread = math.sqrt(
            sum(m[name].spread ** 2 for m in (*winner, *baseline)) / (len(winner) + len(baseline))
        )
        pairs = [a - b for a, b in zip(after, before, strict=True)]
        seen = [math.log(m[name].value) for m in known if name in m]
        groups = _groups(after, before, past, seen)
        compared[name] = _compare(pairs, groups, spread, figure.kind == "throughput", error)
    weighted = [f for f in both if f.weight > 0]
    total = sum(f.weight for f in figures if f.weight > 0)

    def score(measured: Figures) -> float:
        return sum(f.weight / total * math.log(measured[f.name].value) for f in weighted)

    spread = math.sqrt(
        sum(
            (f.weight / total * m[f.name].spread) ** 2
            for f, m in itertools.product(weighted, (*winner, *baseline))
        )
        / (len(winner) + len(baseline))
    )
    after, before = [score(m) for m in winner], [score(m) for m in baseline]
    past = [score(m) for m in earlier if all(f.name in m for f in weighted)]
    seen = [score(m) for m in known if all(f.name in m for f in weighted)]
    pairs = [a - b for a, b in zip(after, before, strict=True)]
    overall = _compare(pairs, _groups(after, before, past, seen), spread, True, error)
    return Verdict(overall, compared)


def _groups(
    after: list[float], before: list[float], past: list[float], known: list[float]
) -> list[list[float]]:
    """What was measured with one setting and is to agree but for noise."""
    if len(after) == 1:
        return [after + known, before + past]
    return [after, before, *([past] if past else [])]


def compare_once(
    after: Sequence[Estimate], before: Sequence[Estimate], repeats: Sequence[Sequence[Estimate]]
) -> Comparison:
    """Compare a throughput that was measured too seldom to know its noise, which is taken from
    `repeats` of others like it."""
    pairs = [math.log(a.value / b.value) for a, b in zip(after, before, strict=True)]
    both = (*after, *before)
    spread = math.sqrt(sum(each.spread**2 for each in both) / len(both))
    groups = [[math.log(each.value) for each in group] for group in repeats if group]
    return _compare(pairs, groups, spread, True, ERROR)
