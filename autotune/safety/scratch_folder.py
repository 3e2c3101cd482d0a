"""The folder of a scratch file: its name, and its removal. Light, as the guardian removes it."""

import contextlib
import os
import shlex
import time
from collections import deque
from pathlib import Path

from autotune.safety import separate_process
from autotune.system.mountinfo import mounted

SCRATCH_PREFIX = ".autotune-"

FILE = "scratch"

REMOVE_TIMEOUT_S = 20.0

HANGING_TIMEOUT_S = 1.0
"""To remove a file that a write to hangs."""

FIND_TIMEOUT_S = 20.0


def remove(folder: Path, timeout_s: float, parent: str = "") -> None:
    """Remove a scratch folder with its file. OSError if it holds anything else, which stays, or
    the filesystem does not answer in time; it is then removed once that does.

    `parent` is another name of the folder that it is in.
    """
    separate_process.remove(parent or str(folder.parent), (folder.name, FILE), timeout_s)


def moved_to(folder: Path, mount: str, timeout_s: float = FIND_TIMEOUT_S) -> Path | None:
    """Where a scratch folder is on the filesystem that is mounted there, perhaps in other places,
    too, if the folder that it was in has another name by now; None if it is nowhere. No two have
    the same name.

    TimeoutError, with what to do, if it is not found in time.
    """
    if not mount:
        return None
    numbers = {each.place: each.device for each in mounted()}
    deadline = time.monotonic() + timeout_s
    # What lies near is looked at first. A bind mount shows only a part of it.
    own = (place for place, number in numbers.items() if number == numbers.get(mount))
    waiting = deque(dict.fromkeys([mount, *own]))
    while waiting:
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"the folder that it was in is gone or has another name; look for it with `find "
                f"{shlex.quote(mount)} -name {folder.name}` and remove it, then delete the "
                "journal"
            )
        with contextlib.suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False) and entry.path not in numbers:
                    if entry.name == folder.name:
                        return Path(entry.path)
                    waiting.append(entry.path)
    return None
