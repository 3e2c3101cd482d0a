"""The checks of each array, in a file of their own."""

import math
import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from autotune import durable
from autotune.checking.record import CheckHistory
from autotune.errors import AutotuneError
from autotune.quantities import show_count
from autotune.system import ownership, sysfs
from autotune.system.array import Array
from autotune.untrusted import MOST_KEPT_BYTES, first_fault, read_file

MOST_READ_BYTES = 4 << 20
"""The newest check is kept, however many parts it has."""


def path_of(state_dir: Path, uuid: str) -> Path:
    return state_dir / "checks" / f"{uuid}.json"


def load(path: Path) -> CheckHistory:
    """The checks of an array; none at first. AutotuneError if they cannot be read, or if others
    than root could have written that something was read."""
    ownership.refuse(path, f"The record of checks {path}")
    try:
        return CheckHistory.model_validate_json(read_file(path, MOST_READ_BYTES))
    except FileNotFoundError:
        return CheckHistory()
    except ValidationError as error:
        fault = f"is damaged ({first_fault(error)})"
    except ValueError as error:
        fault = str(error)
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    raise AutotuneError(f"{path} {fault}; remove it, and the next check begins at the start.")


def save(history: CheckHistory, path: Path) -> None:
    """Whole or not at all, and without the oldest checks once it would be too large. OSError, with
    the file's name, if the disk does not take it; AutotuneError if a link of somebody else's
    leads there."""
    try:
        durable.private_folder(path.parent)
        durable.replace(path, _text(history), 0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def _text(history: CheckHistory) -> str:
    text = history.model_dump_json(indent=1)
    while (size := len(text.encode())) >= MOST_KEPT_BYTES and len(history.checks) > 1:
        over = math.ceil((1 - MOST_KEPT_BYTES / size) * len(history.checks))
        history = history.model_copy(update={"checks": history.checks[max(over, 1) :]})
        text = history.model_dump_json(indent=1)
    return text + "\n"


class Stored:
    """The file with the checks of an array, as this process knows it. Its methods may be called
    from several threads."""

    def __init__(self, path: Path) -> None:
        """Raise AutotuneError as `load`."""
        self.path = path
        self._lock = threading.Lock()
        # First: what is written while it is read shows later.
        self._seen = _mark(path)
        self.at_first = load(path)

    def save(self, history: CheckHistory) -> None:
        """As `save`."""
        with self._lock:
            save(history, self.path)
            self._seen = _mark(self.path)

    def was_rewritten(self) -> bool:
        """Whether another process has written it since."""
        with self._lock:
            return _mark(self.path) != self._seen


def _mark(path: Path) -> tuple[int, int] | None:
    """What is another once a file was replaced; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def by_uuid(state_dir: Path) -> Mapping[str, CheckHistory]:
    """Those of all arrays that were ever checked with this folder. AutotuneError as `load`."""
    return {path.stem: load(path) for path in sorted((state_dir / "checks").glob("*.json"))}


def mismatched(array: Array, state_dir: Path) -> str | None:
    """What the checks say of mismatches where md does not: its counter is that of the last part."""
    if sysfs.read_or(array.md / "mismatch_cnt", "0") != "0":
        return None
    try:
        found = load(path_of(state_dir, array.uuid)).differing
    except AutotuneError:
        # The next check says it.
        return None
    if found is None:
        return None
    return (
        f"The check of {array.device} that began on {found.began.astimezone():%Y-%m-%d} has found "
        f"{show_count(found.mismatches, 'sector')} that differ; look into that, and then let "
        f"`autotune check {array.device} --restart` read all again."
    )
