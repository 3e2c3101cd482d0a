"""Whether a run can start on an array, and what it would be like. Changes nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.measure.workload import load_workload
from autotune.preflight import leftovers
from autotune.preflight.checks import Finding, check, refusals
from autotune.safety.paths import journal_path
from autotune.system.array import Array
from autotune.system.stack import read_stack
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare


@dataclass(frozen=True)
class Diagnosis:
    """What was found on an array, and a run as it would be without options; None if there can be
    none."""

    device: str
    findings: tuple[Finding, ...]
    run: Preparation | None


def diagnose(array: Array, state_dir: Path, known: Collection[str]) -> Diagnosis:
    """`known` are the scratch folders that a journal speaks for."""
    stack = read_stack(array)
    journal = journal_path(state_dir, array.uuid)
    found = [Finding("refuse", leftovers.describe(journal)[0])] if journal.exists() else []
    found += check(array, stack) + leftovers.find(array, stack, known)
    found += leftovers.applied(array, state_dir)
    if refusals(found):
        return Diagnosis(array.device, tuple(found), None)
    try:
        run = prepare(Options(array.device, load_workload("balanced")), state_dir)
    except AutotuneError as error:
        return Diagnosis(array.device, (Finding("refuse", str(error)), *found), None)
    if run.left_to_another:
        found.append(Finding("warn", run.left_to_another))
    return Diagnosis(array.device, tuple(found), run)
