"""Where journals lie, and what has become of them. Light."""

import fcntl
from pathlib import Path

from autotune.durable import open_roots_own, sync_folder
from autotune.system.noted_records import APPLIED, forget

_WAITING = ".waiting.jsonl"


def applied_path(state_dir: Path, uuid: str) -> Path:
    """Where the record of values that were applied to stay lies."""
    return state_dir / APPLIED / f"{uuid}.jsonl"


def applied_profile_path(state_dir: Path, uuid: str) -> Path:
    """Where the profile lies whose values were applied to stay, beside that record."""
    return applied_path(state_dir, uuid).with_suffix(".json")


def applied_records(state_dir: Path) -> list[Path]:
    """The records of all that was applied to stay."""
    return sorted((state_dir / APPLIED).glob("*.jsonl"))


def is_of_applied(path: Path) -> bool:
    """Whether a record is of what was applied to stay."""
    return path.parent.name == APPLIED


def journal_path(state_dir: Path, uuid: str) -> Path:
    """Where the journal of an array lies."""
    return state_dir / "journal" / f"{uuid}.jsonl"


def waiting_path(journal: Path) -> Path:
    """Where lies what of a journal has to wait for the end of a sync."""
    uuid = journal.name.partition(".")[0]
    return journal.parent.parent / "journal" / f"{uuid}{_WAITING}"


def is_waiting(path: Path) -> bool:
    """Whether a journal is of what waits for the end of a sync."""
    return path.name.endswith(_WAITING)


def open_journals(state_dir: Path) -> list[Path]:
    """All journals of a state folder: of commands under way, those that wait for the end of a sync,
    and those that were left."""
    return sorted((state_dir / "journal").glob("*.jsonl"))


def is_held(path: Path) -> bool:
    """Whether a process holds this journal, and so clears it itself: its run, its guardian, or one
    that waits for a sync's end. OSError if it cannot be read, AutotuneError if others than root may
    have written it."""
    with open_roots_own(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def clear_if_torn(path: Path) -> bool:
    """Remove a journal whose first line was never written in full, as a power cut leaves it:
    nothing is changed before that line is durable. Return whether it was one.

    A run that is just writing the line finds its journal gone and changes nothing.
    """
    with open_roots_own(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if b"\n" in file.read():
            return False
        forget(path)
        path.unlink()
    sync_folder(path.parent)
    return True
