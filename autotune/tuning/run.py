"""A run from end to end: the Python API, and what `autotune run` calls."""

import contextlib
import dataclasses
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.deploy import catalogue
from autotune.errors import AutotuneError, StoppedError
from autotune.knobs import ram_bytes
from autotune.knobs.profile_file import save_profile
from autotune.measure.write_budget import Written
from autotune.problem.profile import Profile
from autotune.quantities import show_count
from autotune.results import solve, stored_run
from autotune.results.pareto import Named
from autotune.safety.deferred_restore import settle
from autotune.safety.locks import lock
from autotune.safety.paths import journal_path
from autotune.store import TrialRecord
from autotune.system.array import find_array
from autotune.tuning.document import whole_document
from autotune.tuning.earlier_runs import earlier_trials
from autotune.tuning.hints import hints as catalogue_hints
from autotune.tuning.interruptible import Interruptible
from autotune.tuning.preload import Loading
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare
from autotune.tuning.reporter import Reporter
from autotune.tuning.resume import interrupted, to_resume
from autotune.tuning.session import session
from autotune.tuning.stored_problem import stored_problem
from autotune.tuning.strategies import find_strategy, load_strategy
from autotune.tuning.supervised import tell
from autotune.tuning.time_spent import PREPARING, THINKING, Spent
from autotune.tuning.trials import Trials
from autotune.tuning.tune import Result, tune
from autotune.tuning.winner import (
    free_file,
    leave_in_force,
    prepare_to_keep,
    profile_of,
    tell_replaced,
)

if TYPE_CHECKING:
    from autotune.store.database import Store

REMEMBERED = 10
"""How many earlier runs are looked at, of whatever array."""


@dataclass(frozen=True)
class Done:
    """A run that came to its end: its number in the store, what it found, the winner's profile
    and file if there is a winner, its RAM, the phases that could not be measured here
    and why, the three named answers, if it came so far as to have any, and where its time went."""

    number: int
    result: Result
    profile: Profile | None
    path: Path | None
    ram_bytes: int
    original_ram_bytes: int
    left_out: tuple[str, ...]
    not_measured: str
    named: Named | None
    spent: Spent


def run(
    options: Options,
    state_dir: Path,
    reporter: Reporter,
    keep: bool = False,
    resume: bool = False,
) -> Done:
    """Tune an array, or `resume` its newest run that was cut.

    The originals are back at the end, unless `keep` and the winner was confirmed: then the
    winner's values stay. Raise AutotuneError whatever else happens, the originals being back.
    """
    began = time.monotonic()
    entry = find_strategy(options.strategy) if options.given is None else None
    array = find_array(options.device)
    journal = journal_path(state_dir, array.uuid)
    with lock(array, journal, applies=keep):
        settle(journal, array.root)
        # Under the lock: what a run that is just ending has set is not the original.
        if keep:
            prepare_to_keep(array, state_dir, reporter)
        preparation = _prepared(options, state_dir, reporter)
        factory = Loading(lambda: load_strategy(entry)) if entry is not None else None
        # Loads SQLAlchemy, which a dry run does not need.
        from autotune.store.database import Store  # noqa: PLC0415

        store = Store(state_dir)
        if factory is not None:
            factory.look()
        number, earlier, written = _open(store, preparation, reporter, resume)
        tell(state_dir, array.uuid, array.device, number)
        try:
            if factory is not None:
                preparation = _remembering(store, preparation, number, reporter)
                preparation = _hinted(preparation, state_dir, reporter)
            with session(preparation, state_dir, reporter, written) as (bench, watch):
                trials = Trials(preparation, bench, watch, store, number, reporter, began)
                trials.replay(earlier)
                if factory is not None:
                    trials.when_warm = factory.wait
                    if earlier or preparation.live:
                        # There is no warm-up, beside which it could go on loading.
                        factory.wait()
                trials.spent.add(PREPARING, time.monotonic() - began)
                result, problem = tune(
                    preparation, trials, factory and Interruptible(factory, watch.signals), reporter
                )
                trials.spent.add(THINKING, time.monotonic() - began - trials.spent.total)
                profile, path = None, None
                if result.keep:
                    profile = profile_of(preparation, result, watch, state_dir)
                    path = free_file(state_dir / "profiles" / f"{array.name}-run{number}.json")
                    save_profile(profile, path)
                # Before anything stays in force: a disk that is full by now is an end with the
                # originals.
                final = stored_problem(preparation, problem.figures, written.total)
                store.update_problem(number, final.document())
                said = whole_document(preparation, result, path, trials.spent)
                store.finish_run(number, "done", result.reason, _dumped(profile), said)
                if keep and profile is not None:
                    tell_replaced(preparation, profile, bench.journal, state_dir, reporter)
                    leave_in_force(preparation, result, profile, bench.journal, watch, state_dir)
                    tell(state_dir, array.uuid, array.device, number, kept=True)
        except StoppedError as error:
            raise _interrupted(store, number, options, error, written) from None
        except BaseException as error:
            _note(store, number, "failed", str(error))
            raise
    return Done(
        number=number,
        result=result,
        profile=profile,
        path=path,
        ram_bytes=ram_bytes(preparation.array, result.winner),
        original_ram_bytes=ram_bytes(preparation.array, result.baseline),
        left_out=tuple(phase.name for phase in preparation.left_out),
        not_measured=preparation.not_measured,
        named=solve.named(store.run(number), store.trials(number)),
        spent=trials.spent,
    )


def _prepared(options: Options, state_dir: Path, reporter: Reporter) -> Preparation:
    preparation = prepare(options, state_dir)
    for text in preparation.said_first:
        reporter.notice(text)
    return preparation


def _interrupted(
    store: "Store", number: int, options: Options, error: StoppedError, written: Written
) -> StoppedError:
    """The error, noted, and with what goes on with the run if something can."""
    _note(store, number, "interrupted", str(error))
    # Whatever is wrong with the store, this is why the run ended.
    with contextlib.suppress(AutotuneError):
        written.keep()
        is_cut = store.run(number).state == "interrupted"
        if is_cut and store.trials(number) and options.given is None:
            more = f"`--resume`, with the same options, goes on with run {number}."
            error.args = (f"{error} {more}",)
    return error


def _dumped(profile: Profile | None) -> dict[str, Any] | None:
    return profile.model_dump(mode="json") if profile else None


def _open(
    store: "Store", preparation: Preparation, reporter: Reporter, resume: bool
) -> tuple[int, list[TrialRecord], Written]:
    """The number of the run in the store, the trials that it already has, and what it wrote."""
    array = preparation.array
    problem = stored_problem(preparation, preparation.figures)
    trials: list[TrialRecord] = []
    before = 0
    if resume:
        number, trials = to_resume(store, array.uuid, array.fingerprint, problem)
        reporter.notice(f"Going on with run {number} after {show_count(len(trials), 'trial')}.")
        before = stored_run.read(store.run(number)).written_bytes
        store.reopen_run(number)
    else:
        cut = interrupted(store.runs(array.uuid))
        if cut is not None and preparation.options.given is None:
            reporter.notice(
                f"This is a new run. Run {cut.id} was interrupted after "
                f"{show_count(cut.trials, 'trial')}; --resume continues that one instead."
            )
        number = store.start_run(array.uuid, array.device, array.fingerprint, problem.document())

    def keep(total: int) -> None:
        store.update_problem(number, {**problem.document(), "written_bytes": total})

    return number, trials, Written(preparation.options.write_budget, before, keep)


def _remembering(
    store: "Store", preparation: Preparation, number: int, reporter: Reporter
) -> Preparation:
    """The preparation with what the newest runs before this one say of it."""
    array, run = preparation.array, store.run(number)
    before = []
    for each in [each for each in store.runs() if each.id < number][:REMEMBERED]:
        # One that is damaged says nothing.
        with contextlib.suppress(AutotuneError):
            before.append((each, store.trials(each.id)))
    known = earlier_trials(stored_run.read(run), array.uuid, array.fingerprint, run.started, before)
    if known:
        trials = show_count(len(known), "trial")
        reporter.step(f"Starting with what {trials} of earlier runs showed")
    return dataclasses.replace(preparation, earlier=known)


def _note(store: "Store", number: int, state: str, outcome: str) -> None:
    # What ended the run is what the user must see, not that it could not be stored. What was found
    # stays, though it may not be left in force.
    with contextlib.suppress(AutotuneError):
        if store.run(number).state == "running":
            store.finish_run(number, state, outcome)


def _hinted(preparation: Preparation, state_dir: Path, reporter: Reporter) -> Preparation:
    """The preparation with what the catalogue has for arrays like this one."""
    known, faults = catalogue.entries(state_dir)
    for fault in faults:
        reporter.notice(f"{fault} It is left out.")
    hints = [*preparation.hints, *catalogue_hints(preparation, known)]
    return dataclasses.replace(preparation, hints=tuple(hints))
