"""What earlier runs showed, as weaker evidence for a new one. Pure.

A run counts if it measured the same phases on this array, or on one of the same class, and if it
measured the settings that are the originals now: everything is taken relative to those, since
figures of another day or another array are no figures of this one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from statistics import fmean
from typing import Any

from autotune.objective import Figures
from autotune.search import Earlier, Estimate, Setting, Status
from autotune.store import RunRecord, TrialRecord

DOUBT = 0.1
"""How far (in logs) a setting's effect may have moved since, even on the same array."""
DOUBT_A_MONTH = 0.05
DOUBT_CHANGED = 0.1
"""If the disks, the shape or the kernel have changed."""
DOUBT_OTHER = 0.2
"""If it was another array of the same class."""
MONTH_S = 30 * 86400.0
SAME_CLASS = ("level", "media")


def earlier_trials(
    problem: Mapping[str, Any],
    uuid: str,
    fingerprint: str,
    now: datetime,
    runs: Iterable[tuple[RunRecord, Sequence[TrialRecord]]],
) -> tuple[Earlier, ...]:
    """The trials of earlier runs that say something about this one. `problem`: as stored."""
    found: list[Earlier] = []
    for run, trials in runs:
        if not _comparable(run.problem, problem):
            continue
        months = (now - run.started).total_seconds() / MONTH_S
        doubts = [DOUBT, DOUBT_A_MONTH * max(months, 0.0)]
        if run.uuid != uuid:
            doubts.append(DOUBT_OTHER)
        elif run.fingerprint != fingerprint:
            doubts.append(DOUBT_CHANGED)
        found.extend(_of_run(trials, problem, math.hypot(*doubts)))
    return tuple(found)


def _comparable(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    try:
        same_phases = then["workload"]["phases"] == now["workload"]["phases"]
        return same_phases and all(then["array"][k] == now["array"][k] for k in SAME_CLASS)
    except (KeyError, TypeError):
        return False


def _of_run(
    trials: Sequence[TrialRecord], problem: Mapping[str, Any], doubt: float
) -> Iterable[Earlier]:
    """Every setting of the run but the originals, relative to them."""
    baseline: Setting = problem["baseline"]
    complete = [t for t in trials if t.status is Status.COMPLETE]
    home = [_fresh(t) for t in complete if _shared(t.requested, baseline) == baseline]
    for trial in complete:
        setting = _shared(trial.requested, baseline)
        legal = all(value in problem["knobs"][k]["choices"] for k, value in setting.items())
        if setting == baseline or not legal:
            continue
        ratios = {}
        for name, estimate in _fresh(trial).items():
            before = [math.log(figures[name].value) for figures in home if name in figures]
            if before:
                ratio = estimate.value / math.exp(fmean(before))
                ratios[name] = Estimate(ratio, estimate.spread)
        if ratios:
            yield Earlier(setting, ratios, doubt)


def _shared(setting: Setting, baseline: Setting) -> Setting:
    """The setting in the knobs of this run: one that the earlier did not tune was as it is."""
    return {name: setting.get(name, value) for name, value in baseline.items()}


def _fresh(trial: TrialRecord) -> Figures:
    """What the trial measured itself."""
    return {n: e for n, e in trial.figures.items() if n.partition(".")[0] in trial.measured}
