"""Runs and trials of the past, as tables and documents."""

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.errors import RefusalError
from autotune.problem.setting import Setting, show_setting
from autotune.problem.trial import ROLES
from autotune.quantities import show_count
from autotune.report import named_answers
from autotune.report.tables import QUIET_QUANTITIES
from autotune.report.text_table import TextTable
from autotune.results import solve, stored_run
from autotune.results.stored_run import StoredProblem
from autotune.safety.locks import is_locked
from autotune.store import RunRecord, TrialRecord
from autotune.suggested import in_folder
from autotune.untrusted import harmless


def as_it_is(run: RunRecord) -> RunRecord:
    """A run that was killed could not store that it was."""
    if run.state != "running" or is_locked(run.uuid):
        return run
    if _is_of_the_lab(run) and "AUTOTUNE_LAB" not in os.environ:
        # Its processes and locks cannot be seen from here.
        return dataclasses.replace(run, outcome="Under way in the lab, or killed there.")
    return dataclasses.replace(run, state="interrupted", outcome="Killed.")


def _is_of_the_lab(run: RunRecord) -> bool:
    try:
        return stored_run.read(run).lab
    except RefusalError:
        return False


def print_runs(console: Console, runs: Sequence[RunRecord]) -> None:
    """One line a run."""
    if not runs:
        console.print("No runs yet; `autotune run /dev/md0` makes one.")
        return
    # A page tells UTC, which whoever gets it understands as well.
    zone = datetime.now().astimezone().tzname()
    heads = ("run", f"started ({zone})", "array", "state", "trials", "outcome")
    table = TextTable(*heads, right=[0, 4], whole=[1])
    for run in runs:
        started = run.started.astimezone().strftime("%Y-%m-%d %H:%M")
        table.add_row(
            str(run.id), started, run.device, run.state, str(run.trials), Text(run.outcome)
        )
    console.print(table)


def runs_document(runs: Sequence[RunRecord]) -> list[dict[str, Any]]:
    return [_run(run) for run in runs]


def _run(run: RunRecord) -> dict[str, Any]:
    document = dataclasses.asdict(dataclasses.replace(run, said=None))
    del document["said"]
    document["started"] = run.started.isoformat()
    document["ended"] = run.ended.isoformat() if run.ended else None
    return document


def print_run(console: Console, run: RunRecord, trials: Sequence[TrialRecord]) -> None:
    """The trials of a run: what differed from the baseline, and the figures that were measured."""
    baseline = trials[0].requested if trials else {}
    outcome = f" {run.outcome[:1].upper()}{run.outcome[1:].rstrip('.')}." if run.outcome else ""
    console.print(f"Run {run.id} on {run.device}: {run.state}.{outcome}")
    with contextlib.suppress(RefusalError):
        console.print(_asked(stored_run.read(run)))
    console.print(_trials(trials, baseline))
    console.print()
    console.print(_figures(trials))
    console.print("= carried over: no changed setting can move it, so it was not measured again")
    console.print("– not measured in this trial")
    compares = in_folder(f"`autotune report {run.id}`")
    console.print(
        f"Figures are as each trial measured them. {compares} compares settings: "
        "it takes out how the array itself changed from trial to trial."
    )
    named_answers.print_named(console, solve.named(run, trials), baseline, run.id)


def _trials(trials: Sequence[TrialRecord], baseline: Setting) -> TextTable:
    """What was tried, and how each trial ended."""
    table = TextTable("trial", "role", "status", "settings", right=[0])
    for trial in trials:
        setting = show_setting(trial.requested, baseline)
        reason = f" ({trial.reason})" if trial.reason else ""
        table.add_row(
            str(trial.number),
            ROLES.get(trial.role, trial.role),
            trial.status.value,
            setting + reason,
        )
    return table


def _figures(trials: Sequence[TrialRecord]) -> TextTable:
    """What was measured, a column a figure: MB/s of a throughput, ms of a p99."""
    names = dict.fromkeys(
        name for trial in trials for name in trial.figures if not name.endswith(QUIET_QUANTITIES)
    )
    heads = ["trial"]
    for name in names:
        phase, _, quantity = name.partition(".")
        head = "MB/s" if quantity == "throughput" else f"{quantity.replace('_', ' ')} ms"
        heads.append(f"{phase}\n{head}")
    table = TextTable(*heads, right=range(len(heads)), whole=range(len(heads)))
    for trial in trials:
        table.add_row(str(trial.number), *(_shown(trial, name) for name in names))
    return table


def _shown(trial: TrialRecord, name: str) -> str:
    estimate, phase = trial.figures.get(name), name.partition(".")[0]
    if estimate is None:
        return "–"
    if phase not in trial.measured:
        return "="
    value = estimate.value / 1e6
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def _asked(problem: StoredProblem) -> str:
    """What --resume has to be told again."""
    return (
        f"Workload {harmless(problem.workload.name)}, strategy {harmless(problem.strategy)}, at "
        f"most {show_count(problem.trials, 'combination')}, changing "
        f"{harmless(', '.join(problem.knobs))}."
    )


def run_document(run: RunRecord, trials: Sequence[TrialRecord]) -> dict[str, Any]:
    """A run with its trials, its three named answers (None if it ended too early to have any) and
    its front of gain against p99; figures as {name: {value, spread}}."""
    listed = []
    for trial in trials:
        document = dataclasses.asdict(trial)
        document["started"] = trial.started.isoformat()
        listed.append(document)
    return {
        **_run(run),
        "trials": listed,
        "named": named_answers.document(solve.named(run, trials)),
        "front": [named_answers.point_document(point) for point in solve.pareto(run, trials)],
    }
