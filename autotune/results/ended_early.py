"""Trials that were ended early, which other ceilings than the run's would allow. Pure."""

from collections.abc import Sequence

from autotune.problem.figure import Figure
from autotune.problem.objective import Figures, broken_ceilings
from autotune.problem.trial import Status
from autotune.results.offers import roomy
from autotune.store import TrialRecord

OVER_CEILING = "is surely over its ceiling"
"""Why, after the figure's name, a trial was ended that was not just slow."""


def is_over_ceiling(trial: TrialRecord) -> bool:
    """Whether a trial was ended early since a latency passed its ceiling."""
    return trial.status is Status.ABORTED and trial.reason.endswith(OVER_CEILING)


def allowed_by(
    figures: Sequence[Figure], trials: Sequence[TrialRecord], before: Figures
) -> tuple[tuple[int, ...], str]:
    """The numbers of the trials that were ended early and break none of these ceilings by what they
    showed, and the options under which a run would measure them to the end."""
    found = [
        trial
        for trial in trials
        if is_over_ceiling(trial) and not broken_ceilings(figures, trial.figures, before)
    ]
    highest: dict[str, float] = {}
    for trial in found:
        last = trial.measured[-1] if trial.measured else ""
        for figure in figures:
            shown = trial.figures.get(figure.name)
            if figure.phase == last and figure.limited and shown is not None:
                highest[last] = max(highest.get(last, 0.0), shown.value)
    options = [f"--p99-ceiling {phase}={roomy(ns)}" for phase, ns in highest.items()]
    return tuple(trial.number for trial in found), " ".join(options)


def sentence(numbers: Sequence[int], options: str) -> str:
    """What to say of them; empty if there are none."""
    if not numbers:
        return ""
    which = ", ".join(map(str, numbers))
    one = len(numbers) == 1
    ended = f"Trial {which} was" if one else f"Trials {which} were"
    again = (
        f"; a run with {options} would measure {'it' if one else 'them'} whole" if options else ""
    )
    return f"{ended} ended early under the run's own ceilings and could not be counted{again}."
