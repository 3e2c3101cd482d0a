"""Small arrays on the same slice of each disk, one after the other, each with a bench to measure it
on."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from autotune.design import array_head
from autotune.design.blank_disks import look_at_each_again
from autotune.design.creation import create
from autotune.design.filling import fill
from autotune.design.shape import Shape
from autotune.design.workspace import NAME, OFFSET_BYTES, Workspace, last_free
from autotune.errors import (
    AutotuneError,
    InfeasibleError,
    RefusalError,
    RestoreError,
    SignalledError,
    StoppedError,
)
from autotune.knobs import stripe_cache
from autotune.measure.fio_command import Target
from autotune.measure.phase import Bench
from autotune.measure.workload import Phase
from autotune.measure.write_budget import Written
from autotune.preflight.raw_device import Newcomers, held
from autotune.quantities import show_bytes
from autotune.safety import own_array
from autotune.safety.guardian import Guardian, guarded
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.signals import Signals
from autotune.safety.watch import Watch
from autotune.system import sysfs
from autotune.system.array import read_array
from autotune.system.blockdev import md_uuid
from autotune.tuning.reporter import Reporter

STAYS = (
    "Ctrl-Z does not stop this, since a small array would stay on the disks; Ctrl-C ends it, and "
    "removes the array."
)


@contextmanager
def on_slices(workspace: Workspace, state_dir: Path, reporter: Reporter) -> Iterator["Slices"]:
    """The slices of a workspace, filled, under a lock, a journal and a guardian; at the end,
    however it comes, nothing is left of what was made there.

    Raise RefusalError, with nothing written, if a disk is not blank or not free.
    """
    look_at_each_again(workspace.disks)
    path = journal_path(state_dir, workspace.uuid)
    signals = Signals(STAYS)
    with (
        lock(workspace, path),
        signals.caught(reporter.notice),
        guarded(
            new_journal(path, workspace.uuid, workspace.device, ()), reporter.notice
        ) as guardian,
    ):
        slices = Slices(workspace, guardian, signals)
        reporter.step("Filling a slice of each disk")
        slices.prepare(lambda share: reporter.progress("filling", share, None))
        try:
            yield slices
        except SignalledError:
            # The watch of an array speaks of its settings.
            slices.look()
            raise


class Slices:
    """Makes arrays on a workspace and removes them. `written` counts what the loads write."""

    def __init__(self, workspace: Workspace, guardian: Guardian, signals: Signals) -> None:
        self.workspace = workspace
        self.written = Written()
        self.progress: Callable[[Phase, float], None] = lambda _phase, _share: None
        self._guardian, self._signals = guardian, signals

    def look(self) -> None:
        """Raise StoppedError if the work is to end."""
        if not self._signals.going():
            raise SignalledError(f"Stopped by {self._signals.name}; what was made is removed.")
        if why := self._guardian.lost:
            raise StoppedError(
                f"Stopped: {why}, and without it a kill of autotune would leave an array behind; "
                "what was made is removed."
            )

    def prepare(self, progress: Callable[[float], None]) -> None:
        """Announce the arrays, and fill the slices. Raise RefusalError if a disk is not blank."""
        look_at_each_again(self.workspace.disks)
        self._guardian.journal.making(self.workspace.hardware)
        comers = [Newcomers(disk) for disk in self.workspace.disks]

        def look() -> None:
            self.look()
            for why in filter(None, (comer() for comer in comers)):
                raise StoppedError(f"Stopped: {why}. {self._was_written()}")

        fill(self.workspace.disks, OFFSET_BYTES, self.workspace.slice_bytes, look, progress)
        self.written.add(self.workspace.slice_bytes * len(self.workspace.disks))

    def _was_written(self) -> str:
        start, end = OFFSET_BYTES, OFFSET_BYTES + self.workspace.slice_bytes
        return (
            f"What somebody wrote to these disks since this began, from {show_bytes(start)} to "
            f"{show_bytes(end)}, may be lost."
        )

    @contextmanager
    def made(self, shape: Shape) -> Iterator[Bench]:
        """An array of this shape on the slices, for as long as the context lasts.

        Raise InfeasibleError if mdadm or the kernel does not make it, StoppedError if a disk is not
        blank any more, RestoreError if it cannot be removed.
        """
        self.look()
        try:
            try:
                name = self._create(shape)
            except RefusalError as error:
                raise StoppedError(f"Stopped: {error} {self._was_written()}") from None
            self._guardian.journal.made(whole=True)
            with self._bench(name, shape) as bench:
                yield bench
        finally:
            # Where it cannot be noted, as on a full disk, it is removed all the same.
            with contextlib.suppress(AutotuneError):
                self._guardian.journal.made(whole=False)
            removal = own_array.remove(
                self.workspace.uuid, [disk.name for disk in self.workspace.disks]
            )
            if removal.failed:
                raise RestoreError("; ".join(removal.failed) + ".")

    def _create(self, shape: Shape) -> str:
        """Make an array; its name. Another one may have taken that of the last one, as udev names
        what is plugged in."""
        workspace, held = self.workspace, self._guardian.journal.held
        assert held is not None
        words = (
            *(f"--size={workspace.slice_bytes // 1024}K", f"--data-offset={OFFSET_BYTES // 1024}K"),
            # Redundancy that is not consistent costs no more and no less than one that is.
            *("--assume-clean", f"--uuid={workspace.mdadm_uuid}"),
            *(f"--name={NAME}", "--homehost=any"),
        )
        # With it goes the lock of the journal: if this process is killed now, the guardian waits
        # until mdadm is done.
        name = last_free()
        try:
            create(f"/dev/{name}", shape, workspace.disks, words, held.fileno())
        except InfeasibleError:
            if not self._is_anothers(name):
                raise
            # It was faster than mdadm.
            return self._create(shape)
        return name

    def _is_anothers(self, name: str) -> bool:
        metadata = sysfs.read_or(Path("/sys/block", name, "md/metadata_version"), "")
        return md_uuid(name, metadata, Path("/")) not in ("", self.workspace.uuid)

    @contextmanager
    def _bench(self, name: str, shape: Shape) -> Iterator[Bench]:
        journal, array = self._guardian.journal, read_array(name)
        if (array.uuid, array.level) != (self.workspace.uuid, shape.level):
            raise StoppedError(f"Stopped: {array.device} is not the array that was made just now.")
        array_head.clear(array.device, array.uuid)
        watch = Watch(array, ())
        watch.signals = self._signals
        watch.rely_on(self._guardian)
        for disk in self.workspace.disks:
            watch.also(Newcomers(disk))
        with held(array) as descriptor:
            whole = Target(Path(array.device), array.size_bytes, descriptor=descriptor)
            yield Bench(
                array.name,
                whole,
                whole,
                journal,
                watch,
                partial(stripe_cache.shrink, array, journal.store),
                self.progress,
                written=self.written,
                stripes=partial(stripe_cache.stripes, array),
                grows=stripe_cache.grows(array),
            )
