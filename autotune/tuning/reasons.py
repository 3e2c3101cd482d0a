"""Why a run ends as it does, in words."""

from collections.abc import Iterable, Sequence

from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.setting import Setting
from autotune.quantities import show_figure, show_latency
from autotune.results.best_seen import LOOKS_BETTER
from autotune.results.ended_early import is_over_ceiling
from autotune.results.offers import roomy
from autotune.results.proof import PROOF_BASELINE, fresh
from autotune.stats.drift import largest_drifts
from autotune.tuning.search import Search
from autotune.tuning.trials import Trials


def nothing_better(trials: Trials, search: Search) -> str:
    """Why nothing was worth a proof."""
    tried = trials.count("search")
    if not tried:
        return search.stopped.text or "there was nothing to try"
    points = search.points()
    looked = [point for point in points[1:] if point.gain.value > LOOKS_BETTER]
    if any(point.holds(search.figures, points[0]) for point in looked):
        if tried == 1:
            return "the combination that was tried looked better, but by no more than noise"
        return f"none of the {tried} combinations tried looked better by more than noise"
    over = looked or any(map(is_over_ceiling, trials.records))
    if tried == 1:
        said = "looked better, but broke its ceilings" if over else "did not look better"
        return f"the combination that was tried {said}"
    if over:
        return f"of the {tried} combinations tried, none looked better and held its ceilings"
    return f"none of the {tried} combinations tried looked better"


def ceilings_relaxed(relaxed: list[Figure], before: Figures) -> str:
    names = " and ".join(figure.name for figure in relaxed)
    option = " ".join(f"--p99-ceiling {f.phase}={roomy(before[f.name].value)}" for f in relaxed)
    return (
        f"No combination that was tried meets the ceiling for {names}, nor do the original "
        "settings. So the run looked for what is faster without a longer p99. The array meets "
        f"{option}."
    )


def breaks(figures: Iterable[Figure], before: Figures) -> list[str]:
    """Which ceilings the array breaks as it is, and what it would hold, a sentence each."""
    said = []
    for figure in broken_ceilings(figures, before, before):
        shown, limit = before[figure.name].value, figure.ceiling or 0.0
        said.append(
            f"As it is, the array breaks the ceiling for {figure.name}: it shows "
            f"{show_latency(shown)} where {show_latency(limit)} is allowed. The run looks for "
            f"settings that meet it. As it is, the array meets --p99-ceiling "
            f"{figure.phase}={roomy(shown)}."
        )
    return said


def broke(figures: Sequence[Figure], first: Figures, shown: Figures) -> list[str]:
    """The same in the end, when the original settings were measured more often; and what only
    their first trials broke."""
    still = broken_ceilings(figures, shown, shown)
    mended = [
        f"The first trials of the original settings broke the ceiling for {figure.name} "
        f"({show_latency(first[figure.name].value)}); by all that was measured, they hold it "
        f"({show_latency(shown[figure.name].value)})."
        for figure in broken_ceilings(figures, first, first)
        if figure not in still and figure.name in shown
    ]
    return [*breaks(figures, shown), *mended]


VARIED = 1.5
"""How far apart the original settings' own values may be before it is told."""


def varied(figures: Sequence[Figure], trials: Trials) -> list[str]:
    """Which figures the array itself did not hold: a value in ms is no surer than that. What has
    drifted is told elsewhere."""
    told, found = largest_drifts(trials.originals), []
    own = [fresh(r) for r in trials.records if r.role in ("baseline", PROOF_BASELINE)]
    for figure in figures:
        name = figure.name
        seen = [each[name].value for each in own if name in each]
        counts = figure.weight > 0 or figure.limited
        if counts and name not in told and len(seen) > 1 and max(seen) >= VARIED * min(seen):
            ends = [show_figure(figure.kind, end(seen)) for end in (min, max)]
            found.append(f"{name} {' to '.join(ends)} ({len(seen)} times)")
    if not found:
        return []
    return [
        "The array itself varied. With the original settings, it showed: "
        f"{'; '.join(found)}. So what was measured in turn says more than values side by side."
    ]


def still_broken(figures: list[Figure], before: Figures, trials: Trials, baseline: Setting) -> str:
    """Which ceiling the original settings break, and how near a trial came to it; or nothing."""
    broken = broken_ceilings(figures, before, before)
    if not broken:
        return ""
    name, ceiling = broken[0].name, broken[0].ceiling or 0.0
    said = (
        f"; the original settings break the ceiling of {show_latency(ceiling)} for {name} "
        f"({show_latency(before[name].value)})"
    )
    others = [r for r in trials.records if name in fresh(r) and r.requested != baseline]
    if not others:
        return said
    nearest = min(others, key=lambda record: record.figures[name].value)
    return (
        f"{said}, and the lowest that another combination showed is "
        f"{show_latency(nearest.figures[name].value)} (trial {nearest.number})"
    )
