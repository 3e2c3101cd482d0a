"""The scratch file: the only place on a filesystem that autotune writes to."""

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import AutotuneError, RefusalError, is_signalled
from autotune.measure.fio_command import Target
from autotune.measure.write_budget import Written
from autotune.safety import separate_process
from autotune.safety.journal import Journal
from autotune.safety.scratch_folder import (
    FILE,
    HANGING_TIMEOUT_S,
    REMOVE_TIMEOUT_S,
    SCRATCH_PREFIX,
    remove,
)
from autotune.system.scratch_space import refuse_if_shared


@contextmanager
def scratch_file(
    parent: Path,
    size: int,
    fstype: str,
    journal: Journal,
    progress: Callable[[float], None],
    written: Written,
    notice: Callable[[str], None],
) -> Iterator[Target]:
    """A file of `size` random bytes in a new folder of its own in `parent`, removed at the end.

    The folder is open to its owner alone, and the file is kept open, so that nobody can swap it
    for a link, be it root of a container whose volume this is. It is written in full: reads of
    space that is only allocated never reach the disks.
    `progress` hears the share that is written, 0 to 1; `written` counts it; `notice` hears that
    the file could not be removed, if the journal does not say so. Raise RefusalError if it cannot
    be made, or the write budget is too small for it.
    """
    refuse_if_shared(parent)
    written.check_scratch(size)
    # Kept open, it leads there whatever is mounted over it meanwhile.
    place = os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    here = f"/proc/self/fd/{place}"
    folder = parent / (SCRATCH_PREFIX + secrets.token_hex(8))
    journal.scratch(folder)
    to_restore = False
    try:
        _fill(folder, (here, str(size), fstype), journal, progress, written)
        file = _opened(place, folder)
        try:
            yield Target(folder / FILE, size, descriptor=file)
        finally:
            os.close(file)
    except BaseException as error:
        # The settings first.
        to_restore = is_signalled(error) and not journal.cleared
        raise
    finally:
        if not to_restore:
            _remove(folder, here, journal, notice)
        os.close(place)


def _remove(folder: Path, here: str, journal: Journal, notice: Callable[[str], None]) -> None:
    try:
        hangs = str(folder) in journal.record.hanging
        remove(folder, HANGING_TIMEOUT_S if hangs else REMOVE_TIMEOUT_S, here)
        journal.removed(folder)
    except OSError as error:
        # Until it is cleared, the journal speaks for the folder.
        if journal.cleared:
            notice(f"The scratch folder {folder} is left to remove: {error.strerror}.")
    except AutotuneError:
        pass


def _opened(place: int, folder: Path) -> int:
    """The file, found without following a link. Raise RefusalError if it is not the one."""
    flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        ours = os.open(folder.name, flags | os.O_DIRECTORY, dir_fd=place)
        try:
            file = os.open(FILE, flags, dir_fd=ours)
        finally:
            os.close(ours)
    except OSError as error:
        raise RefusalError(
            f"The scratch file in {folder} cannot be opened: {error.strerror}."
        ) from None
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(file)
        raise RefusalError(f"Somebody has put something else in the place of {folder / FILE}.")
    return file


def _fill(
    folder: Path,
    how: tuple[str, str, str],
    journal: Journal,
    progress: Callable[[float], None],
    written: Written,
) -> None:
    here, size, fstype = how
    done = 0

    def on_progress(count: int) -> None:
        nonlocal done
        done = count
        progress(count / int(size))

    written.expect(int(size))
    try:
        separate_process.fill(here, (folder.name, FILE, size, fstype), on_progress)
    except separate_process.HangingError as error:
        journal.hanging(folder)
        raise error.__cause__ or error from None
    except OSError as error:
        raise RefusalError(
            f"The scratch file in {folder.parent} cannot be written: {error.strerror}."
        ) from None
    finally:
        written.add(done)
