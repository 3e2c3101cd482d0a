"""Whether the state folder takes what a run writes there. Leaves nothing behind."""

import errno
import os
import tempfile
from pathlib import Path

TRIED_BYTES = 256 * 1024
"""What a first run takes before its first trial: an empty store and a journal."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


def no_room(state_dir: Path) -> str | None:
    """Why a run could keep nothing there, in a sentence; None if it can. Of a folder that a run
    would make, the one that it would lie in is tried."""
    if os.geteuid() != 0:
        # Another finding says that only root can start a run.
        return None
    folder = next(each for each in (state_dir, *state_dir.absolute().parents) if each.exists())
    try:
        # On most filesystems this file has no name, so that nothing is left of it in any case.
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            data = bytes(TRIED_BYTES)
            while data:
                data = data[file.write(data) or 0 :]
            os.fsync(file.fileno())
    except OSError as error:
        elsewhere = "choose another folder with --state-dir"
        if error.errno in _FULL:
            return (
                f"The disk that holds {state_dir} is full; free some space on it, or {elsewhere}."
            )
        return f"Nothing can be written to {state_dir} ({error.strerror}); {elsewhere}."
    return None
