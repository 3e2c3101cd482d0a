"""A design from end to end: the Python API, and what `autotune design` calls."""

import math
import secrets
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.design import array_head
from autotune.design.blank_disks import find_disks
from autotune.design.commands import Commands, commands
from autotune.design.creation import create
from autotune.design.proof import Finalist, Proof, prove
from autotune.design.search import LEAST_TRIALS, Search
from autotune.design.slices import on_slices
from autotune.design.space import Space, space
from autotune.design.trials import Trials
from autotune.design.workspace import Workspace, first_free, last_free, slice_of
from autotune.errors import RefusalError, SignalledError, UsageError
from autotune.measure.workload import Workload
from autotune.preflight.checks import program_missing
from autotune.problem.ceilings import Ceiling, check_phases
from autotune.problem.figure import Figure
from autotune.quantities import show_seconds
from autotune.safety.guardian import guarded
from autotune.safety.journal import Journal
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.signals import Signals
from autotune.store import TrialRecord
from autotune.system import sysfs
from autotune.system.programs import find
from autotune.tuning.preload import Loading
from autotune.tuning.reporter import Reporter
from autotune.tuning.strategies import find_strategy, load_strategy

STRATEGY = "bayes"


@dataclass(frozen=True)
class Options:
    """What was asked for: the disks, named twice; what may be chosen (nothing: all that is safe);
    what counts, under which ceilings; and for how long. `workload_given` is what the user called
    the workload."""

    disks: tuple[str, ...]
    destructive: tuple[str, ...]
    workload: Workload
    levels: tuple[str, ...] = ()
    consistencies: tuple[str, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()
    time_s: float = 1800.0
    seed: int = 0
    workload_given: str = ""


@dataclass(frozen=True)
class Result:
    """What a design found. `figures` have their ceilings; `commands` are the winner's; `stopped` is
    why the search ended."""

    workspace: Workspace
    space: Space
    workload: Workload
    figures: tuple[Figure, ...]
    proof: Proof
    commands: Commands
    device: str
    """Which the commands make."""
    stopped: str
    records: tuple[TrialRecord, ...]
    seconds: float
    bytes_written: int
    workload_given: str

    @property
    def winner(self) -> Finalist:
        return self.proof.winner


def design(options: Options, state_dir: Path, reporter: Reporter) -> Result:
    """Measure shapes on slices of the disks, and remove all that was made for it.

    Raise UsageError or RefusalError, with nothing written, if the disks are not blank, or what is
    asked for cannot be; any other AutotuneError with everything removed, RestoreError if something
    could not be.
    """
    began = time.monotonic()
    workspace, among = _prepare(options)
    factory = Loading(lambda: load_strategy(find_strategy(STRATEGY)))
    phases = options.workload.phases
    ceilings = options.ceilings or options.workload.limits
    with on_slices(workspace, state_dir, reporter) as slices:
        factory.wait()
        trials = Trials(slices, phases, reporter, began + options.time_s, options.seed)
        search = Search(among, trials, phases, options.seed)
        reporter.step("Measuring what mdadm makes by itself")
        search.measure_default(ceilings)
        reporter.step("Searching")
        search.run(factory)
        asked = {ceiling.phase for ceiling in ceilings}
        proof = prove(trials, among.default, search.finalists(), asked, reporter)
    device = f"/dev/{first_free()}"
    given = [disk.given for disk in workspace.disks]
    return Result(
        workspace,
        among,
        options.workload,
        tuple(trials.figures),
        proof,
        commands(proof.winner.shape, device, given, str(uuid.uuid4())),
        device,
        search.stopped,
        tuple(trials.records),
        time.monotonic() - began,
        slices.written.total,
        options.workload_given or options.workload.name,
    )


def make(
    result: Result, state_dir: Path, notice: Callable[[str], None] = lambda _text: None
) -> None:
    """Make the array that was found. A signal ends it before mdadm starts, or not at all; killed,
    its guardian removes what there is of it.

    Raise RefusalError if a disk is not blank any more, or its name is taken, SignalledError if it
    is not to be made any more, InfeasibleError if mdadm does not make it, MeasurementError if it
    cannot be written, with nothing left of it, RestoreError if something is.
    """
    signals, workspace = Signals(), replace(result.workspace, uuid=secrets.token_hex(16))
    path = journal_path(state_dir, workspace.uuid)
    with signals.caught(notice), lock(workspace, path):
        name = Path(result.device).name
        if sysfs.read_or(Path("/sys/block") / name / "md/array_state", "clear") != "clear":
            raise RefusalError(
                f"{result.device} is there by now, so nothing was made; run the commands above "
                "with another name."
            )
        if not signals.going():
            raise SignalledError(f"Stopped by {signals.name}; nothing was made.")
        journal = new_journal(path, workspace.uuid, result.device, ())
        with guarded(journal, notice):
            _make(result, workspace, journal)


def _make(result: Result, workspace: Workspace, journal: Journal) -> None:
    journal.making(workspace.hardware)
    assert journal.held is not None
    words = [f"--uuid={workspace.mdadm_uuid}"]
    # With the lock of the journal: the guardian waits until mdadm is done.
    create(result.device, result.winner.shape, workspace.disks, words, journal.held.fileno())
    array_head.clear(result.device, workspace.uuid)
    # It stays. What cannot be told to the guardian, it would remove.
    journal.over()
    journal.close()


def _prepare(options: Options) -> tuple[Workspace, Space]:
    disks = find_disks(options.disks, options.destructive)
    among = space(len(disks), options.levels, options.consistencies)
    check_phases(options.ceilings, options.workload.figures)
    if missing := program_missing():
        raise RefusalError(missing)
    if find("mdadm") is None:
        raise RefusalError("mdadm is not installed; install the package mdadm.")
    workspace = Workspace(disks, secrets.token_hex(16), last_free(), slice_of(disks))
    _check_time(options, workspace)
    return workspace, among


def _check_time(options: Options, workspace: Workspace) -> None:
    """Raise UsageError if the time surely leaves nothing to try: better known now than after the
    slices were written."""
    phases = options.workload.phases
    trials_s = LEAST_TRIALS * sum(phase.expected_seconds + phase.growth_s for phase in phases)
    least_s = 60 * math.ceil((trials_s + workspace.filling_s) / 60)
    if options.time_s < least_s:
        quicker = "" if options.workload.name == "quick" else ", such as --workload quick"
        raise UsageError(
            f"In {show_seconds(options.time_s)} nothing could be tried and proven. With the "
            f'workload "{options.workload.name}" a design takes {show_seconds(least_s)} at the '
            f"least. Allow more (--time), or choose a workload with less to measure{quicker}."
        )
