"""Whether a run can start on an array, and what it would be like. Changes nothing."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.measure.workload import load_workload
from autotune.preflight import leftovers
from autotune.preflight.checks import PreflightFinding, check, refusals
from autotune.preflight.disk_space import no_room
from autotune.preflight.syncs import degraded, slowed, syncing
from autotune.safety.locks import is_locked
from autotune.safety.other_folders import removed_records
from autotune.safety.paths import journal_path
from autotune.store.opening import fault
from autotune.system import sync
from autotune.system.array import Array
from autotune.system.stack import read_stack
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare


@dataclass(frozen=True)
class Diagnosis:
    """What was found on an array, and a run as it would be without options; None if there can be
    none."""

    device: str
    findings: tuple[PreflightFinding, ...]
    run: Preparation | None


def diagnose(array: Array, state_dir: Path, known: Collection[str]) -> Diagnosis:
    """`known` are the scratch folders that a journal speaks for."""
    stack = read_stack(array)
    journal = journal_path(state_dir, array.uuid)
    found = [PreflightFinding("refuse", leftovers.describe(journal)[0])] if journal.exists() else []
    checked = check(array, stack) + leftovers.find(array, stack, known)
    if is_locked(array.uuid):
        if not found:
            text = f"A run on {array.device} is under way; wait for its end, or stop it."
            found.append(PreflightFinding("refuse", text))
        own = _of_the_run_itself(array)
        checked = [finding for finding in checked if finding.message not in own]
    elif not found and (slow := slowed(array)):
        found.append(PreflightFinding("warn", slow))
    found += checked
    if full := no_room(state_dir):
        found.append(PreflightFinding("refuse", full))
    # Who is not root may not look.
    elif not refusals(found) and (unusable := fault(state_dir)):
        found.append(PreflightFinding("refuse", unusable))
    found += leftovers.applied(array, state_dir)
    found += (PreflightFinding("warn", text) for text in removed_records(array))
    if refusals(found):
        return Diagnosis(array.device, tuple(found), None)
    try:
        run = prepare(Options(array.device, load_workload("balanced")), state_dir)
    except AutotuneError as error:
        return Diagnosis(array.device, (PreflightFinding("refuse", str(error)), *found), None)
    if run.left_alone:
        found.append(PreflightFinding("warn", run.left_alone))
    return Diagnosis(array.device, tuple(found), run)


def _of_the_run_itself(array: Array) -> set[str | None]:
    """What a run does to the array while it measures: nobody has to end that by hand."""
    return {
        syncing(array),
        degraded(array) if sync.real_sync(array) else None,
        *leftovers.bounds(array),
    }
