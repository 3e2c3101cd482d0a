"""Making a setting effective: announced in the journal, written in order, read back."""

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from autotune.errors import InfeasibleError, StoppedError
from autotune.knobs import (
    Knob,
    plan,
    ram_bytes,
    read_setting,
    stripe_cache,
    unsafe_now,
)
from autotune.knobs.resets import resets
from autotune.problem.setting import Setting
from autotune.safety.journal import Journal
from autotune.safety.record import Record
from autotune.safety.set_by import QUEUE_DEPTH
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.memory import spare_bytes


def apply(
    array: Array,
    knobs: Sequence[Knob],
    setting: Setting,
    journal: Journal,
    watch: Callable[[], None] = lambda: None,
) -> Setting:
    """Bring the array to the setting; return what took effect, read back.

    Raise InfeasibleError, the array being somewhere in between, if an earlier store has not come
    through yet, a value must not be written now, the memory for it is not there, the kernel refuses
    it, or takes another value; StoppedError if somebody else sets one of the files meanwhile.
    """
    # What it would store, the files would seem to have by now.
    sysfs.await_late()
    writes = plan(array, setting, knobs)
    cost = ram_bytes(array, setting) - ram_bytes(array, read_setting(array, knobs))
    if writes:
        _check_memory(array, cost)
    reads = _Reads([write.path for write in writes], journal.record)
    for write in writes:
        watch()
        reads.look(write.path)
        # A switch of the scheduler may have set it just now.
        if write.path.exists() and sysfs.value(write.path) == write.text:
            continue
        # A sync may have begun since.
        if reason := unsafe_now(write.path):
            raise InfeasibleError(reason)
        # At each step up again: what the steps before have really taken shows only now.
        _check_memory(array, stripe_cache.growth_bytes(array, write))
        journal.writing(write.path, write.text)
        journal.store(write.path, write.text)
        reads.moved(write.path)
    reads.look()
    if writes:
        journal.settled()
    effective = read_setting(array, knobs)
    for name, value in setting.items():
        if effective[name] != value:
            raise InfeasibleError(f"The kernel took {effective[name]} for {name} {value}.")
    return effective


class _Reads:
    """What files read as far as our writes go, so that those of somebody else are seen."""

    def __init__(self, written: Sequence[Path], record: Record) -> None:
        recorded = map(Path, record.originals)
        # With a scheduler goes what is its own, and after it nobody can tell who had set that.
        reset = (path for path in recorded if any(resets(each, path) for each in written))
        # The kernel itself lowers a depth.
        self._paths = {path for path in (*written, *reset) if path.name != QUEUE_DEPTH}
        self._known: dict[Path, str] = {}
        for path in self._paths:
            self._learn(path)
            self._refuse_if_changed(path, record)

    def _refuse_if_changed(self, path: Path, record: Record) -> None:
        """Raise StoppedError if a file reads something else than the writes before have left, or
        than it did before all of them. Not where one of them was not seen to take effect."""
        name = str(path)
        if path not in self._known or name not in record.originals:
            return
        if name in record.unsettled | record.reset:
            return
        known = record.ours.get(name, [record.originals[name]])[-1]
        if known not in ("", sysfs.original(path), self._known[path]):
            raise StoppedError(_set_by_somebody(path, self._known[path], known))

    def _learn(self, path: Path) -> None:
        self._known.pop(path, None)
        # It may be of a scheduler that is not in force, or have no value (`wbt_lat_usec`).
        with contextlib.suppress(OSError):
            self._known[path] = sysfs.value(path)

    def moved(self, written: Path) -> None:
        """Learn what a write has left, in its own file and in those that the kernel resets."""
        for path in self._paths:
            if path == written or resets(written, path):
                self._learn(path)

    def look(self, only: Path | None = None) -> None:
        """Raise StoppedError if one of them, or `only` this, reads something else."""
        for path, text in self._known.items():
            if only not in (None, path) or not path.exists():
                continue
            if (now := sysfs.value(path)) != text:
                raise StoppedError(_set_by_somebody(path, now, text))


def _set_by_somebody(path: Path, now: str, before: str) -> str:
    return (
        f"Stopped: somebody else set {path.name} to {now} (it was {before}); theirs is left as it "
        "is."
    )


def follow_again(array: Array, knobs: Sequence[Knob], journal: Journal) -> None:
    """Let those of the knobs' files follow the sysctl again that did so before the run: their own
    number would cut the array off from it (`sysfs.original`)."""
    originals = journal.record.originals
    for path in (path for knob in knobs for path in knob.paths(array)):
        if originals.get(str(path)) == sysfs.SYSTEM and sysfs.original(path) != sysfs.SYSTEM:
            journal.writing(path, sysfs.SYSTEM)
            journal.store(path, sysfs.SYSTEM)
    journal.settled()


def _check_memory(array: Array, cost_bytes: int) -> None:
    spare = spare_bytes(array.root)
    if cost_bytes > spare:
        raise InfeasibleError(
            f"The setting would take {cost_bytes >> 20} MiB more memory and only "
            f"{spare >> 20} MiB can be spared now."
        )


def journaled_paths(array: Array, knobs: Sequence[Knob], checks: bool = True) -> list[Path]:
    """Every file that the knobs can change, and those that checks leave changed, if any run."""
    paths = dict.fromkeys(path for knob in knobs for path in knob.paths(array))
    moved = (array.md / "sync_min", array.md / "sync_max") if checks else ()
    return [*paths, *(path for path in moved if path.exists())]
