"""Why a run ends as it does, in words."""

from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.trial import Status
from autotune.quantities import show_latency
from autotune.results.offers import roomy
from autotune.results.seen import LOOKS_BETTER
from autotune.tuning.search import Hunt
from autotune.tuning.trials import Trials


def nothing_better(trials: Trials, hunt: Hunt) -> str:
    """Why nothing was worth a proof."""
    tried = trials.count("search")
    if not tried:
        return hunt.stopped.text or "there was nothing to try"
    points = hunt.points()
    better = any(point.gain.value > LOOKS_BETTER for point in points[1:])
    better = better or any(r.status is Status.ABORTED for r in trials.records)
    if tried == 1:
        said = "looked better, but broke its ceilings" if better else "did not look better"
        return f"the setting that was tried {said}"
    if better:
        return f"of the {tried} settings tried, none looked better and held its ceilings"
    return f"none of the {tried} settings tried looked better"


def ceilings_given_up(relaxed: list[Figure], before: Figures) -> str:
    names = " and ".join(figure.name for figure in relaxed)
    option = " ".join(f"--p99-ceiling {f.phase}={roomy(before[f.name].value)}" for f in relaxed)
    return (
        f"Nothing tried holds the ceiling for {names}, which the array breaks as it is; so what "
        f"is better without making that worse was looked for. What it holds: {option}."
    )


def still_broken(figures: list[Figure], before: Figures, trials: Trials) -> str:
    """Which ceiling the original settings break, and how near a trial came to it; or nothing."""
    broken = broken_ceilings(figures, before, before)
    if not broken:
        return ""
    name, ceiling = broken[0].name, broken[0].ceiling or 0.0
    nearest = min(
        (record for record in trials.records if name in record.figures),
        key=lambda record: record.figures[name].value,
    )
    return (
        f"; the original settings break the ceiling of {show_latency(ceiling)} for {name} "
        f"({show_latency(before[name].value)}), and the lowest that a trial showed is "
        f"{show_latency(nearest.figures[name].value)} (trial {nearest.number})"
    )
