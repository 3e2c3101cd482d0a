"""Reading and writing sysfs files: the only place that stores a value in the kernel."""

import errno
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import InfeasibleError, RefusalError

SYSTEM = "system"
"""Written to a file that can follow a sysctl, it does."""

_stores: dict[Path, threading.Thread] = {}
"""Stores that have not returned yet. A store waits for md's mutex and may come through long after
its caller gave up, so the next store to the same file waits for it: the last one asked for wins."""


@dataclass(frozen=True)
class Write:
    """One store: `text` into the file at `path`."""

    path: Path
    text: str


def read(path: Path) -> str:
    """The file's text, without white space around it. OSError as the kernel gives it."""
    try:
        # As it is: in text, "\r", which may be in a name, would read as the end of a line.
        return path.read_bytes().decode("utf-8", "replace").strip()
    except OSError as error:
        # It names no file where it was open already, as one of a scheduler that is gone.
        error.filename = error.filename or str(path)
        raise


def read_or(path: Path, otherwise: str) -> str:
    """The file's text, or `otherwise` where the file is missing or the kernel has no value."""
    try:
        return read(path)
    except OSError:
        return otherwise


def value(path: Path) -> str:
    """What the file holds: the bare number, or the name in brackets.

    "200000 (system)" is "200000"; "none [mq-deadline] bfq" is "mq-deadline". A speed limit from
    2³¹ on, which the kernel shows as negative, is what was written: to md it is one (seen on
    6.1.176), and the kernel does not take the negative number back. OSError as `read`.
    """
    text = read(path)
    if "[" in text and "]" in text:
        return text[text.index("[") + 1 : text.index("]")]
    words = text.split()
    if len(words) == 2 and words[1] in ("(system)", "(local)"):
        text = words[0]
    if path.name.startswith("sync_speed_") and text.startswith("-"):
        return str(int(text) & 0xFFFFFFFF)
    return text


def original(path: Path) -> str:
    """What to write to the file later to bring back what it holds now.

    As `value`, but "200000 (system)" is "system": the number would cut the array off from the
    sysctl that it follows (seen on 6.1.176). "" for a setting of a scheduler that is not in force.
    OSError as `read`.
    """
    if is_schedulers_own(path) and not path.exists():
        return ""
    if read(path).endswith(f"({SYSTEM})"):
        return SYSTEM
    return value(path)


def identity(folder: Path) -> str:
    """Tells a device, by its folder, from another one that has its name later: the kernel numbers
    each folder anew, and an array has a UUID. "" if it is gone."""
    try:
        return f"{folder.stat().st_ino} {read_or(folder / 'md/uuid', '')}".strip()
    except OSError:
        return ""


def device(path: Path) -> Path:
    """The folder of the device that a file below /sys/block belongs to. Those of a scheduler lie
    one folder deeper than the others: queue/iosched/read_expire."""
    folder = path.parent.parent
    return folder.parent if is_schedulers_own(path) else folder


def is_schedulers_own(path: Path) -> bool:
    """Whether a file comes and goes with the scheduler of a disk."""
    return path.parent.name == "iosched"


def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
    """Store a value, giving up after `timeout_s` seconds: a store takes md's mutex and may block.

    A return means that the kernel took the store, not that the value applies: read it back.
    Raise InfeasibleError if the file is missing, the kernel refuses the value or does not answer
    in time; RefusalError without the permission.
    """
    if not path.exists():
        # Opened with O_CREAT, a missing sysfs file reports EACCES, which would mislead.
        raise InfeasibleError(f"{path} does not exist on this kernel, so {text} was not written.")
    failure: list[OSError] = []

    def store() -> None:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)
            try:
                os.write(descriptor, text.encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            failure.append(error)

    deadline = time.monotonic() + timeout_s
    earlier = _stores.get(path)
    if earlier is not None:
        earlier.join(timeout_s)
        if earlier.is_alive():
            raise InfeasibleError(_late(path, text, timeout_s))
    thread = threading.Thread(target=store, name=f"store {path}", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        # No memory or process number is left for one (pids.max). Better late than not put back.
        store()
    else:
        _stores[path] = thread
        thread.join(max(deadline - time.monotonic(), 0.1))
        if thread.is_alive():
            raise InfeasibleError(_late(path, text, timeout_s))
    _stores.pop(path, None)
    if failure:
        _raise(path, text, failure[0])


def is_late(path: Path) -> bool:
    """Whether a store of this process has not come through though its caller gave up: what the file
    reads may change yet."""
    thread = _stores.get(path)
    return thread is not None and thread.is_alive()


def await_late(timeout_s: float = 30.0) -> None:
    """Wait for all such stores. Raise InfeasibleError if one does not come through in time."""
    deadline = time.monotonic() + timeout_s
    for path, thread in list(_stores.items()):
        thread.join(max(deadline - time.monotonic(), 0.0))
        if thread.is_alive():
            raise InfeasibleError(
                f"An earlier store to {path} has not come through yet, as if a disk hangs; look at "
                "the kernel log, then try again."
            )


def _late(path: Path, text: str, timeout_s: float) -> str:
    return (
        f"{path} did not take {text} within {timeout_s:g} s because the array is busy; "
        "look at /proc/mdstat and the kernel log, then try again."
    )


def _raise(path: Path, text: str, error: OSError) -> None:
    if error.errno in (errno.EACCES, errno.EPERM):
        raise RefusalError(f"No permission to write {path}; run autotune as root.") from error
    reasons = {
        errno.EBUSY: "the array is busy (EBUSY): wait until no sync, check or reshape runs",
        errno.EINVAL: "the kernel says that the value is not valid here (EINVAL)",
        errno.ENOMEM: "there is not enough memory for it (ENOMEM)",
    }
    reason = reasons.get(error.errno or 0, error.strerror or str(error))
    raise InfeasibleError(f"The kernel did not take {text} in {path}: {reason}.") from error
