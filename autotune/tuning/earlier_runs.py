"""What earlier runs showed, as weaker evidence for a new one. Pure.

A run counts if it measured the same phases on this array, or on one of the same class, and if it
measured the settings that are the originals now: everything is taken relative to those, since
figures of another day or another array are no figures of this one.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

from autotune.errors import RefusalError
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import Earlier, Status
from autotune.results import stored_run
from autotune.results.pareto import PooledTrials
from autotune.results.stored_run import StoredProblem
from autotune.store import RunRecord, TrialRecord

DOUBT = 0.1
"""How far (in logs) a setting's effect may have moved since, even on the same array."""
DOUBT_A_MONTH = 0.05
DOUBT_CHANGED = 0.1
"""If the disks, the shape or the kernel have changed."""
DOUBT_OTHER = 0.2
"""If it was another array of the same class."""
MONTH_S = 30 * 86400.0


def earlier_trials(
    problem: StoredProblem,
    uuid: str,
    fingerprint: str,
    now: datetime,
    runs: Iterable[tuple[RunRecord, Sequence[TrialRecord]]],
) -> tuple[Earlier, ...]:
    """The trials of earlier runs that say something about this one, which has this problem."""
    found: list[Earlier] = []
    for run, trials in runs:
        try:
            then = stored_run.read(run)
            if not _comparable(then, problem):
                continue
            months = (now - run.started).total_seconds() / MONTH_S
            doubts = [DOUBT, DOUBT_A_MONTH * max(months, 0.0)]
            if run.uuid != uuid:
                doubts.append(DOUBT_OTHER)
            elif run.fingerprint != fingerprint:
                doubts.append(DOUBT_CHANGED)
            with stored_run.understood(f"run {run.id}"):
                found.extend(_of_run(then, trials, problem, math.hypot(*doubts)))
        except RefusalError:
            # An autotune too old to say all of it stored it, or it is damaged.
            continue
    return tuple(found)


def _comparable(then: StoredProblem, now: StoredProblem) -> bool:
    same_class = (then.array.level, then.array.media) == (now.array.level, now.array.media)
    return same_class and then.workload.phases == now.workload.phases


def _of_run(
    then: StoredProblem, trials: Sequence[TrialRecord], problem: StoredProblem, doubt: float
) -> Iterable[Earlier]:
    """Every setting of the run but the originals, relative to them; each measurement once."""
    pool = PooledTrials(then, trials)
    baseline = problem.baseline
    before = pool.figures(_in_terms_of(then.baseline, baseline))
    taken = {pool.key(name, _in_terms_of(then.baseline, baseline)) for name in before}
    for trial in trials:
        setting = _in_terms_of(baseline, trial.requested)
        legal = all(value in problem.knobs[k].choices for k, value in setting.items())
        if trial.status is not Status.COMPLETE or not legal:
            continue
        ratios = {}
        for name, estimate in pool.figures(trial.requested).items():
            key = pool.key(name, trial.requested)
            if name in before and key not in taken:
                taken.add(key)
                ratios[name] = Estimate(estimate.value / before[name].value, estimate.spread)
        if ratios:
            yield Earlier(setting, ratios, doubt)


def _in_terms_of(known: Setting, setting: Setting) -> Setting:
    """The setting in these knobs: one that it leaves out is as it is known to be."""
    return {name: setting.get(name, value) for name, value in known.items()}
