"""One run at a time on an array, and on arrays that share a disk."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.errors import RefusalError
from autotune.system.array import Array

LOCKS = Path("/run/autotune")
"""One place for the whole machine, whatever the --state-dir."""


@contextmanager
def lock(array: Array, journal: Path | None = None, folder: Path = LOCKS) -> Iterator[None]:
    """Hold the array (by UUID, since names move) and its physical disks. `journal` is where the
    journal of what is to be changed will be; the lock's file remembers it for whoever comes next.

    Raise RefusalError, naming the process, if another run has one of them, or if an earlier one
    left its journal elsewhere (another --state-dir, or another array on the same disks): its
    values must not become originals.
    """
    journal = journal.absolute() if journal is not None else None
    names = [
        f"array-{array.uuid or array.name}",
        *(f"disk-{leaf}" for leaf in sorted(array.leaves)),
    ]
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            for name in names:
                file = held.enter_context(
                    (folder / name.replace("/", "!")).open("a+", errors="surrogateescape")
                )
                _hold(file.fileno(), array, name)
                file.seek(0)
                _, _, earlier = file.read().strip().partition("\n")
                if journal is not None and earlier not in ("", str(journal)):
                    _refuse_if_there(Path(earlier), array)
                file.truncate(0)
                file.write(f"{os.getpid()}\n{journal or earlier}\n")
                file.flush()
        except OSError as error:
            raise RefusalError(
                f"The lock in {folder} cannot be taken: {error.strerror}; run autotune as root."
            ) from None
        yield


def _refuse_if_there(journal: Path, array: Array) -> None:
    if journal.exists():
        raise RefusalError(
            f"An earlier run left settings on {array.device} or its disks; run "
            f"`autotune restore --state-dir {journal.parent.parent}` first."
        )


def is_held(uuid: str, folder: Path = LOCKS) -> bool:
    """Whether a run of autotune works on this array now."""
    try:
        with (folder / f"array-{uuid}").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _hold(descriptor: int, array: Array, name: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").partition("\n")[0] or "unknown"
        what = (
            f"the disk {name[5:]} of {array.device}" if name.startswith("disk-") else array.device
        )
        raise RefusalError(
            f"Another run of autotune (process {pid}) works on {what}; wait until it has ended."
        ) from None
