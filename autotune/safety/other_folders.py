"""What runs with other state folders have left, as far as the locks remember it."""

import contextlib
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.journal import Journal
from autotune.safety.locks import LOCKS
from autotune.safety.noted_records import out_of_reach, told
from autotune.safety.paths import applied_path, is_held


def left_elsewhere(state_dir: Path, memory: Path = LOCKS) -> list[str]:
    """The journals that wait for a restore with another state folder, and what was applied with
    one, a sentence each."""
    journals = _journals(memory)
    texts = []
    for path in journals:
        folder = path.parent.parent
        with contextlib.suppress(AutotuneError, OSError):
            if folder != state_dir.absolute() and path.exists() and not is_held(path):
                texts.append(
                    f"A run with the state folder {folder} was not cleaned up ({path}); run "
                    f"`autotune restore --state-dir {folder}`."
                )
    folders = dict.fromkeys(path.parent.parent for path in journals)
    for folder in folders:
        if folder != state_dir.absolute():
            texts += [
                f"A profile that was applied to {device} with the state folder {folder} is in "
                f"force; `autotune restore --all --state-dir {folder}` undoes it."
                for device in applied_to(folder)
            ]
    return [*texts, *(told(note, record) for note, record in out_of_reach().items())]


def is_applied_elsewhere(uuid: str, state_dir: Path, memory: Path = LOCKS) -> bool:
    """Whether something is applied to an array with another state folder, in this boot."""
    folders = {path.parent.parent for path in _journals(memory)} - {state_dir.absolute()}
    for folder in folders:
        with contextlib.suppress(AutotuneError, OSError):
            if Journal.load(applied_path(folder, uuid)).record.of_this_boot(Path("/")):
                return True
    return False


def _journals(memory: Path) -> dict[Path, None]:
    """Where the journals of runs are or were, in their order."""
    journals: dict[Path, None] = {}
    for file in sorted(memory.glob("*")) if memory.is_dir() else ():
        with contextlib.suppress(OSError):
            journals |= {
                Path(line): None
                for line in file.read_text(errors="surrogateescape").splitlines()[1:]
                if line
            }
    return journals


def applied_to(folder: Path) -> list[str]:
    """The arrays that something is applied to with a state folder, in this boot."""
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(applied_path(folder, "any").parent.glob("*.jsonl")):
            with contextlib.suppress(AutotuneError, OSError):
                record = Journal.load(path).record
                if record.of_this_boot(Path("/")):
                    found.append(record.device)
    return found
