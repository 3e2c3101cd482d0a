"""Around whatever changes the array: journal, guardian, signals, scratch file, and the way back."""

import contextlib
import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from autotune.deploy import udevd
from autotune.knobs import stripe_cache
from autotune.measure.fio_command import Target
from autotune.measure.live_sync import Recovery
from autotune.measure.phase import Bench
from autotune.measure.scratch import scratch_file
from autotune.measure.write_budget import Written
from autotune.preflight import raw_device
from autotune.safety.apply import journaled_paths
from autotune.safety.guardian import guarded
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.scratch_watch import Footing, SameFile
from autotune.safety.watch import Watch
from autotune.system.array import Array, lacks_journal
from autotune.system.scratch_space import scratch_bytes
from autotune.tuning.preparation import Preparation
from autotune.tuning.reporter import Reporter


@contextmanager
def session(
    preparation: Preparation, state_dir: Path, reporter: Reporter, written: Written
) -> Iterator[tuple[Bench, Watch]]:
    """Journal, guardian, signals and scratch file around whatever changes the array.

    On the way out, for whatever reason, everything is put back (unless the journal was closed).
    Raise RestoreError if something could not be.
    """
    array, knobs = preparation.array, preparation.knobs
    watch = Watch(array, knobs, preparation.live)
    path = journal_path(state_dir, array.uuid)
    paths = journaled_paths(array, knobs, checks=not preparation.live)
    with (
        _woken(array, reporter),
        watch.signals.caught(reporter.notice),
        guarded(new_journal(path, array.uuid, array.device, paths), reporter.notice) as guardian,
        contextlib.ExitStack() as stack,
    ):
        watch.rely_on(guardian)
        failed = f"the write journal of {array.device} has failed; see /proc/mdstat"
        watch.also(lambda: failed if lacks_journal(array.md) else None)
        # What was set by hand since it was looked at is no baseline.
        watch.expect(preparation.baseline)
        journal = guardian.journal
        bench = Bench(
            name=array.name,
            reads=preparation.reads,
            writes=_where_to_write(preparation, journal, watch, reporter, written, stack),
            journal=journal,
            watch=watch,
            begin=partial(stripe_cache.shrink, array, journal.store),
            progress=lambda _p, _s: None,
            recovery=Recovery(array, watch) if preparation.live else None,
            written=written,
            stripes=partial(stripe_cache.stripes, array),
            grows=stripe_cache.grows(array),
        )
        yield bench, watch


@contextmanager
def _woken(array: Array, reporter: Reporter) -> Iterator[None]:
    """A journal keeps udev from what is persisted, also for a disk that is added meanwhile."""
    try:
        yield
    finally:
        if array.has_gained_a_member:
            udevd.wake([array.uuid], reporter.notice)


def _where_to_write(
    preparation: Preparation,
    journal: Journal,
    watch: Watch,
    reporter: Reporter,
    written: Written,
    stack: contextlib.ExitStack,
) -> Target | None:
    """The raw array, a new scratch file, or nothing; the stack gives it free at the end."""
    array, folder = preparation.array, preparation.scratch
    if preparation.options.destructive is not None:
        # Once more, directly before anything is written.
        raw_device.refuse_if_used(array)
        # Held to the end; who writes to it without asking for that ends the run.
        descriptor = stack.enter_context(raw_device.held(array))
        # And now that nobody can stop it: it is no other array that has the name since, and nobody
        # has made a filesystem between the look and the hold.
        watch.look()
        raw_device.refuse_if_not_blank(array)
        watch.also(raw_device.Newcomers(array))
        return dataclasses.replace(preparation.reads, descriptor=descriptor)
    if folder is None:
        return None
    reporter.step(f"Writing a scratch file in {folder}")

    def filled(share: float) -> None:
        watch()
        reporter.progress("scratch file", share, None)

    underlying, mount = preparation.underlying, preparation.stack.mount_for(folder)
    size = scratch_bytes(folder, underlying)
    if mount is not None:
        watch.also(Footing(folder, mount, array.name, underlying, size))
    target = stack.enter_context(
        scratch_file(folder, size, underlying.fstype, journal, filled, written, reporter.notice)
    )
    watch.also(SameFile(target.path))
    return target
