"""What a restore did. Light."""

from dataclasses import dataclass, field
from pathlib import Path

from autotune.errors import AutotuneError


@dataclass
class Outcome:
    """What a restore did: files put back, left to whoever changed them, gone, and failed; what
    waits for the end of a sync; and the arrays and scratch folders of ours that were removed.
    After a reboot every setting is gone, and only such arrays and scratch folders are left to
    remove."""

    restored: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    checking: bool = False
    """A check of ours that does not end is still to be ended."""
    late: bool = False
    """A store of ours has not come through yet, so what its file reads says nothing."""
    rebooted: bool = False

    @property
    def complete(self) -> bool:
        return not self.failed


def because(path: Path, error: AutotuneError | OSError) -> str:
    """Why something with a file failed, for `Outcome.failed`."""
    return f"{path}: {reason(error)}"


def reason(error: AutotuneError | OSError) -> str:
    """The error as the last part of a sentence."""
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.rstrip(".")
