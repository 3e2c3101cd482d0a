"""What earlier runs showed, as weaker evidence for a new one. Pure.

A run counts if it measured the same phases on this array, or on one of the same class, and if it
measured the settings that are the originals now: everything is taken relative to those, since
figures of another day or another array are no figures of this one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from autotune.errors import UsageError
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import Earlier, Status
from autotune.results import stored_run
from autotune.results.pareto import Pool
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
        try:
            found.extend(_of_run(run, trials, problem, math.hypot(*doubts)))
        except UsageError:
            # An autotune too old to say all of it stored it.
            continue
    return tuple(found)


def _comparable(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    try:
        same_phases = then["workload"]["phases"] == now["workload"]["phases"]
        return same_phases and all(then["array"][k] == now["array"][k] for k in SAME_CLASS)
    except (KeyError, TypeError):
        return False


def _of_run(
    run: RunRecord, trials: Sequence[TrialRecord], problem: Mapping[str, Any], doubt: float
) -> Iterable[Earlier]:
    """Every setting of the run but the originals, relative to them; each measurement once."""
    then = stored_run.read(run.id, run.problem)
    pool = Pool(then, trials)
    baseline: Setting = problem["baseline"]
    home = pool.figures(_in_terms_of(then.baseline, baseline))
    taken = {pool.key(name, _in_terms_of(then.baseline, baseline)) for name in home}
    for trial in trials:
        setting = _in_terms_of(baseline, trial.requested)
        legal = all(value in problem["knobs"][k]["choices"] for k, value in setting.items())
        if trial.status is not Status.COMPLETE or not legal:
            continue
        ratios = {}
        for name, estimate in pool.figures(trial.requested).items():
            key = pool.key(name, trial.requested)
            if name in home and key not in taken:
                taken.add(key)
                ratios[name] = Estimate(estimate.value / home[name].value, estimate.spread)
        if ratios:
            yield Earlier(setting, ratios, doubt)


def _in_terms_of(known: Setting, setting: Setting) -> Setting:
    """The setting in these knobs: one that it leaves out is as it is known to be."""
    return {name: setting.get(name, value) for name, value in known.items()}
