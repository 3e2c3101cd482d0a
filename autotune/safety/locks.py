"""One run at a time on an array, and on arrays that share a disk.

What is locked is a folder for each array and disk, in one that only root can open: whoever can open
a file for reading can lock it, and so keep everybody else from it.
"""

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from autotune.errors import AutotuneError, RefusalError
from autotune.safety.journal import Journal
from autotune.safety.lock_holders import holder
from autotune.safety.paths import applied_records, is_of_applied
from autotune.safety.record import Record
from autotune.safety.shared_folder import open_common, open_own
from autotune.system import sysfs
from autotune.system.blockdev import Device
from autotune.system.noted_records import APPLIED, out_of_reach, told

MEMORY = Path("/run/autotune")
"""Which journals there are, for the whole machine, whatever the --state-dir; the locks too, where
/dev cannot be used."""


class Lockable(Device, Protocol):
    """What is locked, by its UUID, with the disks below it: an array, or disks that one is to be
    made of."""

    @property
    def uuid(self) -> str: ...


@contextmanager
def lock(
    array: Lockable,
    journal: Path | None = None,
    folder: Path = MEMORY,
    guard: bool = False,
    applies: bool = False,
    undoes: bool = False,
) -> Iterator[None]:
    """Hold the array (by UUID, since names move) and its physical disks. `journal` is where the
    journal of what is to be changed will be; the lock remembers it for whoever comes next. A
    `guard` changes nothing on the disks, so it shares them with other guards, but not with a run.
    `applies`: the caller may leave values in force. `undoes`: the caller takes such values back. It
    tells whose they are by what the files read now, so no values of a run may lie over them.

    Raise RefusalError, naming the process, if another one has one of them, or if an earlier run
    left its journal elsewhere (another --state-dir, or another array on the same disks): its
    values must not become originals.
    """
    journal = journal.absolute() if journal is not None else None
    own = f"array-{array.uuid or array.name}"
    disks = [f"disk-{leaf}" for leaf in sorted(array.leaves)]
    with contextlib.ExitStack() as held:

        def until_the_end(descriptor: int) -> int:
            held.callback(os.close, descriptor)
            return descriptor

        try:
            memory = until_the_end(open_own(folder, folder))
            place = until_the_end(_open_place(folder))
            for name in (own, *disks):
                file_name = name.replace("/", "!")
                shared = guard and name != own
                taken = until_the_end(open_own(file_name, folder / file_name, place))
                _hold(taken, fcntl.LOCK_SH if shared else fcntl.LOCK_EX, array, name)
                if not shared:
                    _remember(memory, file_name, journal, array, applies, undoes)
        except OSError as error:
            todo = "run autotune as root" if isinstance(error, PermissionError) else "correct that"
            raise RefusalError(
                f"The lock of {array.device} cannot be taken: {error.strerror}; {todo}."
            ) from None
        yield


@contextmanager
def alone(what: str, folder: Path = MEMORY) -> Iterator[None]:
    """Hold something that the machine has once, such as the service. Raise RefusalError, naming the
    process, if another command has it."""
    with contextlib.ExitStack() as held:
        try:
            memory = open_own(folder, folder)
            held.callback(os.close, memory)
            taken = open_own(what, folder / what, memory)
            held.callback(os.close, taken)
        except OSError as error:
            raise RefusalError(
                f"The lock {folder / what} cannot be taken: {error.strerror}; correct that."
            ) from None
        try:
            fcntl.flock(taken, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusalError(
                f"Another command changes the {what} just now ({holder(taken)}); wait until it has "
                "ended."
            ) from None
        yield


def _open_place(folder: Path) -> int:
    """The folder that the locks are in."""
    common = open_common() if folder == MEMORY else None
    if common is not None:
        return common
    return open_own(folder / "locks", folder / "locks")


def _remember(
    memory: int, name: str, journal: Path | None, array: Lockable, applies: bool, undoes: bool
) -> None:
    """Note the journal beside those of other state folders that still have something in force.
    Raise RefusalError if there is another one."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=memory)
    with os.fdopen(descriptor, "r+", errors="surrogateescape") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise RefusalError(
                f"{MEMORY / name} is not a plain file of root's; find out who made it, and remove "
                "it."
            )
        os.fchmod(descriptor, 0o600)
        noted = [Path(line) for line in file.read().splitlines()[1:] if line]
        if undoes:
            for left in noted:
                _refuse_if_over(left, array)
        if journal is not None:
            _refuse_if_out_of_reach(noted, array, applies)
            for earlier in noted:
                if earlier != journal:
                    _refuse_if_there(earlier, array)
                if applies and earlier.parent != journal.parent:
                    _refuse_if_applied(earlier.parent.parent, array)
            elsewhere = [each for each in noted if each.parent != journal.parent]
            noted = [*(each for each in elsewhere if _has_applied(each, array)), journal]
        # Over what is there: on a full disk, an emptied file would stay empty.
        file.seek(0)
        file.write("\n".join([str(os.getpid()), *map(str, noted), ""]))
        file.truncate()


def _refuse_if_there(journal: Path, array: Lockable) -> None:
    if journal.exists():
        raise RefusalError(
            f"An earlier run left settings on {array.device} or its disks; run "
            f"`autotune restore --state-dir {journal.parent.parent}` first."
        )


def _refuse_if_out_of_reach(noted: Sequence[Path], array: Lockable, applies: bool) -> None:
    """What a killed run has left bars all, and what is applied whoever applies something."""

    def concerns(record: Path) -> bool:
        if is_of_applied(record) and not applies:
            return False
        # An array on the same disks may have it there.
        folders = {each.resolve().parents[1] for each in noted}
        return record.stem == array.uuid or record.parents[1] in folders

    for note, record in out_of_reach(array.root, concerns).items():
        raise RefusalError(told(note, record))


def _refuse_if_over(journal: Path, array: Lockable) -> None:
    if journal.exists():
        folder = journal.parent.parent
        raise RefusalError(
            f"What lies on {array.device} stays for now: what a run has set over it, or over its "
            f"disks, goes back first (`autotune restore --state-dir {folder}`; if that cannot be, "
            f"delete {journal})."
        )


def _has_applied(journal: Path, array: Lockable) -> bool:
    """Whether there are records of what was applied where this journal was, be they out of
    reach."""
    folder = journal.parent.parent / APPLIED
    hidden = out_of_reach(array.root, lambda record: record.parent == folder.resolve())
    return bool(hidden) or any(folder.glob("*.jsonl"))


def _refuse_if_applied(state_dir: Path, array: Lockable) -> None:
    """With another --state-dir, what was applied would be taken for the original values, and come
    back once both are restored."""
    for path in applied_records(state_dir):
        with contextlib.suppress(AutotuneError, OSError):
            record = Journal.load(path).record
            if _concerns(record, array) and record.of_this_boot(Path("/")):
                break
    else:
        return
    raise RefusalError(
        f"A profile that was applied to {record.device} with another state folder is in force on "
        f"{array.device} or its disks; run `autotune restore {record.device} --state-dir "
        f"{state_dir}` first, or delete {path} if that array is gone."
    )


def _concerns(record: Record, array: Lockable) -> bool:
    """Whether a file of this array, or of its disks, reads what the record has set."""
    for name, texts in record.ours.items():
        is_of_a_disk = not array.leaves.isdisjoint(Path(name).parts)
        with contextlib.suppress(AutotuneError, OSError):
            concerned = is_of_a_disk or record.uuid == array.uuid
            if concerned and sysfs.original(Path(name)) in texts:
                return True
    return False


def is_locked(uuid: str, folder: Path = MEMORY) -> bool:
    """Whether a command of autotune holds this array's lock now. False, too, where that cannot be
    seen."""
    try:
        place = _open_place(folder)
    except (OSError, RefusalError):
        return False
    try:
        taken = os.open(f"array-{uuid}", os.O_RDONLY | os.O_CLOEXEC, dir_fd=place)
        try:
            fcntl.flock(taken, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            os.close(taken)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(place)
    return False


def _hold(descriptor: int, how: int, array: Lockable, name: str) -> None:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        what = (
            f"the disk {name[5:]} of {array.device}" if name.startswith("disk-") else array.device
        )
        raise RefusalError(
            f"Another run of autotune works on {what}, or something else has its lock: "
            f"{holder(descriptor)}; wait until it has ended."
        ) from None
