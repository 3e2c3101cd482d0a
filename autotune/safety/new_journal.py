"""A new journal: the originals, on disk before the first write. Light."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from autotune.durable import append, private_folder, sync_folder
from autotune.errors import AutotuneError, RefusalError
from autotune.knobs.reshape import MIN
from autotune.knobs.write_order import CACHE, WAITING, unsafe_now
from autotune.safety.handed_over import let_wait
from autotune.safety.journal import Journal
from autotune.safety.paths import waiting_path
from autotune.safety.record import Record, boot_id, kernel_start_s
from autotune.safety.shared_folder import kernel_mark
from autotune.system import ownership, sysfs
from autotune.system.noted_records import APPLIED, NOTES, forget, note


def new_journal(
    path: Path, uuid: str, device: str, paths: Iterable[Path], root: Path = Path("/")
) -> Journal:
    """Record the present texts of `paths`; `write_order.restoring` says in which order they go
    back.

    Raise RefusalError if a journal is already open: what is in the kernel now may be tuned
    values, which must never be taken for originals. Raise AutotuneError, with nothing changed, if
    it cannot be written, or a file cannot be read.
    """
    record = Record(uuid, device, boot_id(root), os.getpid(), {}, kernel_start_s(root))
    record.kernel = kernel_mark() if root == Path("/") else ""
    made = False
    try:
        private_folder(path.parent)
        # What stays in force moves to the second one.
        for folder in (path.parent, path.parent.parent / APPLIED):
            _refuse_where_others_write(folder)
        with path.open("x") as file:
            made = True
            os.fchmod(file.fileno(), 0o600)
            with contextlib.suppress(OSError):
                # Empty, it would be taken for one that a power cut has torn.
                fcntl.flock(file, fcntl.LOCK_EX)
            # Before anything is read: from here on udev sets nothing.
            _note(path, root)
            append(file.fileno(), _head(record, path, paths))
    except FileExistsError:
        if _is_out_of_the_way(path, root):
            return new_journal(path, uuid, device, paths, root)
        raise RefusalError(
            f"An earlier run left settings on {device} that were not put back; "
            f"run `autotune restore` first (journal: {path})."
        ) from None
    except OSError as error:
        # Without a descriptor left it is not even seen that an earlier run's is there.
        if made:
            with contextlib.suppress(OSError):
                _drop(path, root)
        first = "make it writable" if error.errno == errno.EROFS else "free some space"
        raise AutotuneError(
            f"The journal {path} cannot be written ({error.strerror}), "
            f"so nothing was changed; {first} or choose another --state-dir."
        ) from None
    except BaseException:
        if made:
            _drop(path, root)
        raise
    journal = Journal(path, record)
    try:
        sync_folder(path.parent)
        journal.claim()
    except FileNotFoundError:
        forget(path, root)
        raise RefusalError(
            f"Another process has just removed the journal {path}, so nothing was changed; "
            "try again."
        ) from None
    except OSError as error:
        # As on a network's filesystem without locks.
        _drop(path, root)
        raise AutotuneError(
            f"The journal {path} cannot be held ({error.strerror}), so nothing was changed; "
            "choose another --state-dir."
        ) from None
    return journal


def _note(path: Path, root: Path) -> None:
    try:
        note(path, root)
    except OSError as error:
        raise AutotuneError(
            f"{root / NOTES.relative_to('/')} cannot be written ({error.strerror}), so nothing was "
            "changed; free some space there."
        ) from None


def _drop(path: Path, root: Path) -> None:
    """Remove a journal of which nothing was changed yet."""
    forget(path, root)
    path.unlink(missing_ok=True)


def _head(record: Record, path: Path, paths: Iterable[Path]) -> dict[str, object]:
    """The first line, with what the files read now. Not before the journal is there: whoever had
    one may just have put the originals back. Raise AutotuneError if one cannot be read."""
    try:
        record.originals = {str(p): sysfs.original(p) for p in paths}
        record.originals.update(_still_to_go_back(path, record))
        folders = {sysfs.device(Path(name)) for name in record.originals}
        record.folders = {str(folder): sysfs.identity(folder) for folder in folders}
    except OSError as error:
        raise AutotuneError(
            f"{error.filename or record.device} cannot be read ({error.strerror}), so nothing was "
            "changed."
        ) from None
    return {
        "kind": "open",
        "uuid": record.uuid,
        "device": record.device,
        "boot": record.boot,
        "started_s": record.started_s,
        "kernel": record.kernel,
        "pid": record.pid,
        "originals": record.originals,
        "folders": record.folders,
    }


def _is_out_of_the_way(path: Path, root: Path) -> bool:
    """Whether a journal that was left need not bar anybody, and does not any more: nothing was
    changed, by a kill in its first moments, or only what waits for the end of a sync.

    One of an earlier boot is for a restore, which removes what is on disk of its run, too."""
    try:
        journal = Journal.claimed(path)
    except (AutotuneError, OSError):
        return False
    record = journal.record
    try:
        if not record.of_this_boot(root) or record.scratch or record.making:
            return False
        if not all(_has_to_wait(Path(name)) for name in record.ours):
            return False
        if not (record.ours or record.moved):
            _drop(path, root)
            return True
        action = sysfs.read_or(record.action(root), "idle")
        if action == "idle" or (action == "check" and record.checking):
            return False
        let_wait(journal)
        return True
    finally:
        journal.release()


def _has_to_wait(path: Path) -> bool:
    if path.name == CACHE:
        return unsafe_now(path) is not None
    return path.name in WAITING and path.name != MIN


def _still_to_go_back(path: Path, record: Record) -> dict[str, str]:
    """Of the files of a record, the true originals of those that wait for the end of a sync."""
    try:
        waiting = Journal.load(waiting_path(path)).record
    except (AutotuneError, FileNotFoundError):
        return {}
    if not waiting.same_boot(record):
        return {}
    return {
        name: text
        for name, text in waiting.originals.items()
        if name in record.originals and waiting.is_same(Path(name))
    }


def _refuse_where_others_write(folder: Path) -> None:
    """Raise AutotuneError if others can rename a folder or one of those that it is in: what is to
    put an array back must not be removed by them."""
    if found := ownership.fault(folder):
        raise AutotuneError(
            f"Others could remove what is kept in {folder}, so nothing was changed: {found} Or "
            "choose another --state-dir."
        )
