"""What runs with other state folders have left, as far as the locks remember it."""

import contextlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.in_time import answer_in_time
from autotune.safety.journal import Journal
from autotune.safety.locks import MEMORY
from autotune.safety.paths import applied_path, applied_records, is_held
from autotune.system import noted_records
from autotune.system.array import Array, list_arrays
from autotune.system.noted_records import (
    noted_folders,
    out_of_reach,
    removed,
    told,
    told_removed,
)

ANSWER_S = 3.0
"""How long a folder may take to be looked into: its disk may never answer."""


def left_elsewhere(state_dir: Path, memory: Path = MEMORY) -> list[str]:
    """The journals that wait for a restore with another state folder, and what was applied with
    one, a sentence each."""
    texts, journals = [], _journals(memory)
    for folder, known in journals.items():
        if folder != state_dir.absolute():
            texts += _told_of(folder, partial(_left, folder, known))
    for folder in noted_folders():
        texts += _told_of(folder, partial(_out_of_reach, folder))
    for array in list_arrays():
        texts += removed_records(array)
    return list(dict.fromkeys(texts))


def removed_records(array: Array) -> list[str]:
    """What was set on an array and whose record somebody has removed, whatever the state folder, a
    sentence each."""
    texts = []
    for folder in noted_folders():
        texts += _told_of(folder, partial(_removed, folder, array))
    return texts


def _told_of(folder: Path, look: Callable[[], list[str]]) -> list[str]:
    told = answer_in_time(look, ANSWER_S)
    if told is not None:
        return told
    return [
        f"What autotune may have left in the state folder {folder} is not known, since that could "
        f"not be read within {ANSWER_S:.0f} s; see to its disk."
    ]


def _left(folder: Path, journals: Iterable[Path]) -> list[str]:
    texts = []
    for path in journals:
        with contextlib.suppress(AutotuneError, OSError):
            if path.exists() and not is_held(path):
                texts.append(
                    f"A run with the state folder {folder} was not cleaned up ({path}); run "
                    f"`autotune restore --state-dir {folder}`."
                )
    return [
        *texts,
        *(
            f"A profile that was applied to {device} with the state folder {folder} is in "
            f"force; `autotune restore --all --state-dir {folder}` undoes it."
            for device in applied_to(folder)
        ),
    ]


def _out_of_reach(folder: Path) -> list[str]:
    found = out_of_reach(of=lambda record: record.parents[1] == folder)
    return [told(note, record) for note, record in found.items()]


def _removed(folder: Path, array: Array) -> list[str]:
    def of_it(record: Path) -> bool:
        return record.parents[1] == folder and record.stem == array.uuid

    return [f"{told_removed(each, array.device)}." for each in removed(of=of_it).values()]


def is_applied_elsewhere(uuid: str, state_dir: Path, memory: Path = MEMORY) -> bool:
    """Whether something is applied to an array with another state folder, in this boot. One that
    does not answer may have it."""

    def applied(folder: Path) -> list[str]:
        with contextlib.suppress(AutotuneError, OSError):
            record = Journal.load(applied_path(folder, uuid)).record
            return [record.device] if record.of_this_boot(Path("/")) else []
        return []

    folders = _journals(memory).keys() - {state_dir.absolute()}
    return any(answer_in_time(partial(applied, folder), ANSWER_S) != [] for folder in folders)


def forget_removed() -> list[str]:
    """Forget the records that somebody has removed by hand, whatever the state folder: the UUIDs of
    the arrays from which a journal's note has kept udev. A folder that does not answer is left."""
    barred = list[str]()
    for folder in noted_folders():
        barred += answer_in_time(partial(noted_records.forget_removed, folder), ANSWER_S) or []
    return barred


def _journals(memory: Path) -> dict[Path, list[Path]]:
    """Where the journals of runs are or were, by state folder, in their order."""
    journals = dict[Path, None]()
    for file in sorted(memory.glob("*")) if memory.is_dir() else ():
        with contextlib.suppress(OSError):
            lines = file.read_text(errors="surrogateescape").splitlines()[1:]
            journals |= {Path(line): None for line in lines if line}
    folders = dict[Path, list[Path]]()
    for path in journals:
        folders.setdefault(path.parent.parent, []).append(path)
    return folders


def applied_to(folder: Path) -> list[str]:
    """The arrays that something is applied to with a state folder, in this boot."""
    found = []
    with contextlib.suppress(OSError):
        for path in applied_records(folder):
            with contextlib.suppress(AutotuneError, OSError):
                record = Journal.load(path).record
                if record.of_this_boot(Path("/")):
                    found.append(record.device)
    return found
