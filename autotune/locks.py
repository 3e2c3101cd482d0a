"""One run at a time on an array, and on arrays that share a disk."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autotune.array import Array
from autotune.errors import RefusalError

LOCKS = Path("/run/autotune")
"""One place for the whole machine, whatever the --state-dir."""


@contextmanager
def lock(array: Array, folder: Path = LOCKS) -> Iterator[None]:
    """Hold the array (by UUID, since names move) and its physical disks.

    Raise RefusalError, naming the process, if another run has one of them.
    """
    names = [
        f"array-{array.uuid or array.name}",
        *(f"disk-{leaf}" for leaf in sorted(array.leaves)),
    ]
    with contextlib.ExitStack() as held:
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            for name in names:
                file = held.enter_context((folder / name.replace("/", "!")).open("a+"))
                _hold(file.fileno(), array, name)
                file.truncate(0)
                file.write(f"{os.getpid()}\n")
                file.flush()
        except OSError as error:
            raise RefusalError(
                f"The lock in {folder} cannot be taken: {error.strerror}; run autotune as root."
            ) from None
        yield


def _hold(descriptor: int, array: Array, name: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
        what = (
            f"the disk {name[5:]} of {array.device}" if name.startswith("disk-") else array.device
        )
        raise RefusalError(
            f"Another run of autotune (process {pid}) works on {what}; wait until it has ended."
        ) from None
