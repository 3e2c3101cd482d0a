"""Putting back one file of a journal, or telling what somebody else has set there."""

import contextlib
import dataclasses
import os
from collections.abc import Collection
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.knobs.base import read_aheads
from autotune.knobs.resets import DEPTHS, RAISING, depth_back, resets
from autotune.knobs.reshape import MDADMS_MIN
from autotune.knobs.write_order import BOUNDS, WAITING, unsafe_now
from autotune.safety.journal import Journal
from autotune.safety.outcome import Outcome, because
from autotune.safety.record import Record
from autotune.safety.set_by import is_set_for_another, lowers_itself
from autotune.system import disk_originals, sysfs
from autotune.system.process import real_uid, stat_words


def put_back_file(
    journal: Journal,
    write: sysfs.Write,
    keep: str | None,
    coming: Collection[Path],
    outcome: Outcome,
) -> bool:
    """Put one file back, or what somebody else has set there (`keep`), which a write of ours may
    have reset. False if that has to wait for the end of a sync."""
    record, name, wanted = journal.record, str(write.path), write.text
    if name in record.unsettled and record.pid != os.getpid() and _hangs(record.pid):
        # That may be in a store to this file, which comes through after this one, or anywhere else.
        outcome.late = True
        outcome.failed.append(
            f"{name}: an earlier store may still come through, as if a disk hangs"
        )
    if keep is not None:
        wanted = keep
    try:
        # A switch of the scheduler back may have reset it just now.
        now = sysfs.original(write.path)
        # "": the scheduler that it belongs to is not in force, or was not when it was recorded.
        stays = not (sysfs.is_late(write.path) or lowers_itself(record, write.path))
        if (now == wanted or "" in (now, wanted)) and stays:
            return True
        if unsafe_now(write.path) or (write.path in coming and now == MDADMS_MIN):
            return False
        if not record.is_same(write.path):
            outcome.gone.append(name)
            return True
        # What the kernel resets with it is not somebody else's, what is set after that is: if this
        # is killed, too. A full disk keeps nothing from going back, nor does a file beside it that
        # cannot be read.
        resetting = any(resets(write.path, Path(other)) for other in record.originals)
        if resetting:
            with contextlib.suppress(AutotuneError):
                journal.writing(write.path, wanted)
        _write(record, write.path, wanted)
        if resetting:
            with contextlib.suppress(AutotuneError, OSError):
                journal.took_effect(write.path)
        if (now := sysfs.original(write.path)) != wanted:
            outcome.failed.append(f"{name} reads {now} after {wanted} was written")
        elif keep is None:
            outcome.restored.append(name)
    except (AutotuneError, OSError) as error:
        return _failed(write.path, error, outcome)
    return True


def _failed(path: Path, error: AutotuneError | OSError, outcome: Outcome) -> bool:
    """Note why a file was not put back. False if that has to wait for the end of a sync."""
    if path.name in WAITING and sysfs.read_or(path.parent / "sync_action", "idle") != "idle":
        return False
    if sysfs.device(path).exists():
        outcome.failed.append(because(path, error))
        outcome.late |= sysfs.is_late(path)
    else:
        # The device vanished just now.
        outcome.gone.append(str(path))
    return True


def tell(record: Record, write: sysfs.Write, keep: str, outcome: Outcome) -> None:
    """Tell what somebody else has set there."""
    if write.path.name in BOUNDS and unsafe_now(write.path):
        # It is mdadm's, for a moment of a reshape.
        return
    array = sysfs.device(write.path).name == Path(record.device).name
    # What else was set on a disk meanwhile is no news, nor what another array's profile has.
    ours = record.cause(str(write.path)) is not None and not is_set_for_another(
        record, write.path, keep
    )
    if array or ours:
        outcome.foreign.append(f"{write.path} reads {keep}, which was set after that")
    if not array:
        _correct_note(record, write)


def _correct_note(record: Record, write: sysfs.Write) -> None:
    """Where a disk went to another array while a value of ours was tried, udev took that for what
    the disk had."""
    note = disk_originals.noted(write.path)
    if note is None or note.uuid == record.uuid:
        return
    if note.original in record.ours.get(str(write.path), ()):
        # A restore goes on, whatever fails.
        with contextlib.suppress(AutotuneError):
            disk_originals.take_down(write.path, dataclasses.replace(note, original=write.text))


def _write(record: Record, path: Path, wanted: str) -> None:
    """Put a text back, and what goes with it and is in no record: with the length of a queue, and
    with the size of its requests."""
    depths = [path.parent / depth for depth in DEPTHS] if path.name == "nr_requests" else []
    ours = record.ours.get(str(path), ())
    beside = {file: depth_back(sysfs.read(file), ours, wanted) for file in depths if file.exists()}
    if path.name in RAISING:
        beside |= {file: sysfs.read(file) for file in read_aheads([path])}
    beside = {file: text for file, text in beside.items() if not record.originals.get(str(file))}
    sysfs.write(path, wanted)
    for file, text in beside.items():
        if sysfs.read(file) != text:
            sysfs.write(file, text)


def _hangs(pid: int) -> bool:
    """Whether a process waits in the kernel for what cannot be interrupted, though it may be dead
    otherwise: a store that it began still comes through then."""
    process = Path(f"/proc/{pid}")
    if real_uid(process) != os.getuid():
        # Somebody else's has that number by now.
        return False
    return any(stat_words(thread)[:1] == ["D"] for thread in process.glob("task/*"))
