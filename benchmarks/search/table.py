"""Sums races up, a row a strategy."""

import math
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.search.instance import WORTH
from benchmarks.search.race import Race


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    if len(values) < 2:
        return (values[0] if values else math.nan), math.nan
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def gain_cell(races: Sequence[Race]) -> str:
    mean, error = mean_and_error([r.share(r.kept) for r in races if r.instance.optimum >= WORTH])
    return f"{mean:.2f} ±{error:.2f}"


def offered(races: Sequence[Race]) -> float:
    """The share of the gain in what was recommended first, whatever became of it."""
    return statistics.fmean(r.share(r.final) for r in races if r.instance.optimum >= WORTH)


def holds(races: Sequence[Race]) -> float:
    """The share of what was kept that holds its ceilings."""
    kept = [r.kept.holds for r in races if not r.kept_baseline]
    return statistics.fmean(kept) if kept else 1.0


def harm(races: Sequence[Race]) -> str:
    """A run's seconds over a ceiling (and times the part by which), and their share of it all."""
    trials = [each for r in races for each in (*r.tried, *r.proofs)]
    over_s, harm_s = (sum(getattr(each, n) for each in trials) for n in ("over_s", "harm_s"))
    seconds = sum(each.seconds for each in trials)
    runs = max(len(races), 1)
    return f"{over_s / runs:.0f} s, {harm_s / runs:.0f} s·x, {over_s / max(seconds, 1.0):.1%}"


def over(races: Sequence[Race]) -> tuple[float, float]:
    """The share of trials that broke a ceiling, and by how much on average (1.2: by 20 %)."""
    strains = [each.truth.strain for r in races for each in r.tried]
    broke = [strain for strain in strains if strain > 1.0]
    share = len(broke) / len(strains) if strains else 0.0
    return share, statistics.fmean(broke) if broke else 1.0


def worst_kept(races: Sequence[Race]) -> float:
    """The least true gain of what was kept."""
    return min((r.kept.gain for r in races if not r.kept_baseline), default=math.nan)


def claims(races: Sequence[Race]) -> str:
    """Of the arrays with nothing to gain, on how many something was kept."""
    nothing = [r for r in races if r.instance.optimum < WORTH]
    return f"{sum(not r.kept_baseline for r in nothing)} of {len(nothing)}"


def trials_to(races: Sequence[Race], part: float = 0.95) -> str:
    """The median number of trials until the recommendation captures `part` of the optimum."""
    needed: list[float] = []
    for r in races:
        if r.instance.optimum < WORTH or not r.after:
            continue
        reached = [i for i, verdict in enumerate(r.after, 1) if r.share(verdict) >= part]
        needed.append(reached[0] if reached else math.inf)
    if not needed:
        return "-"
    median = statistics.median_low(needed)
    return "more" if math.isinf(median) else f"{median:.0f}"


def row(by_budget: Mapping[int, Sequence[Race]]) -> list[str]:
    """Cells: gain by budget, then what the middle budgets' recommendations and trials were."""
    everything = [r for races in by_budget.values() for r in races]
    share, size = over(everything)
    asking = [seconds for r in everything for seconds in r.asking]
    used = statistics.fmean(
        len(r.tried) / (budget - 1) for budget, races in by_budget.items() for r in races
    )
    return [
        *(gain_cell(races) for races in by_budget.values()),
        f"{statistics.fmean(offered(races) for races in by_budget.values()):.2f}",
        f"{statistics.fmean(r.candidates for r in everything):.1f}",
        f"{holds(everything):.1%}",
        f"{share:.0%} ×{size:.2f}",
        harm(everything),
        f"{worst_kept(everything):.3f}",
        claims(everything),
        trials_to(by_budget[max(by_budget)]),
        f"{used:.0%}",
        f"{statistics.fmean(asking) if asking else 0.0:.3f}",
    ]


def headings(budgets: Sequence[int]) -> list[str]:
    return [
        *(f"gain at {budget}" for budget in budgets),
        "offered",
        "proofs",
        "kept holds",
        "trials over",
        "harm a run",
        "worst kept",
        "claims at default",
        "to 95 %",
        "used",
        "s/proposal",
    ]
