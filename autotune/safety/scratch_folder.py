"""The folder of a scratch file: its name, and its removal. Light, as the guardian removes it."""

from pathlib import Path

from autotune.safety import separate_process

SCRATCH_PREFIX = ".autotune-"

FILE = "scratch"

REMOVE_TIMEOUT_S = 20.0

HANGING_TIMEOUT_S = 1.0
"""To remove a file that a write to hangs."""


def remove(folder: Path, timeout_s: float, parent: str = "") -> None:
    """Remove a scratch folder with its file. OSError if it holds anything else, which stays, or
    the filesystem does not answer in time; it is then removed once that does.

    `parent` is another name of the folder that it is in.
    """
    separate_process.remove(parent or str(folder.parent), (folder.name, FILE), timeout_s)
