"""Where journals and records of what is applied lie, noted until the next boot whatever the
--state-dir: that may be on a filesystem that is not mounted just now, or under another one.

udev's rules look for the note of a journal, and for nothing in the state folder: to look into that
could wait for a mount that waits for the array. Light.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

NOTES = Path("/run/autotune/records")
"""A file for each of them, named by its kind and the array's UUID. A boot takes them."""
APPLIED = "applied"
"""The folder of the records of what is applied."""
_NEW = "."
"""Before the name of one that is being written: hidden from the shell's `*`, too."""


def journal_note(uuid: str) -> Path:
    """The note that is there while there is a journal of this array."""
    return NOTES / f"journal-{uuid}"


def note(record: Path, root: Path = Path("/")) -> None:
    """Note where a record lies, or is about to. OSError on a full /run."""
    path, record = _note(record, root), record.resolve()
    if _stands_for_another(path, record):
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folders = (f"{_identity(folder)} {folder}" for folder in record.parents)
    new = path.with_name(f"{_NEW}{path.name}")
    try:
        new.write_text("\n".join([str(record), *folders, ""]), errors="surrogateescape")
        # Half of one would keep udev from the array, and say nothing else.
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def forget(record: Path, root: Path = Path("/")) -> None:
    """Nothing that the record speaks of is in force any more. To be called before it is removed:
    killed between, nothing untrue is noted."""
    with contextlib.suppress(OSError):
        path = _note(record, root)
        # Its filesystem may be mounted somewhere else by now.
        if not (read := _read(path)) or read[0] == record.resolve() or _is_in(record.parent, read):
            path.unlink()


def forget_removed(state_dir: Path, root: Path = Path("/")) -> list[str]:
    """Forget the records of a state folder that somebody has removed by hand: the UUIDs of the
    arrays from which a journal's note has kept udev."""
    barred = []
    for path, record, folders in _notes(root):
        ours = record.parents[1] == state_dir.resolve()
        if ours and _is_removed(folders) and not _is_there(record):
            with contextlib.suppress(OSError):
                path.unlink()
            if path.name == journal_note(record.stem).name:
                barred.append(record.stem)
    return barred


def out_of_reach(
    root: Path = Path("/"), of: Callable[[Path], bool] = lambda _record: True
) -> dict[Path, Path]:
    """The notes whose record is not there, since its filesystem is not, or something is mounted
    over it, each with where it was written. What somebody has removed is nobody's any more. `of`:
    only those; others are not looked at, since a filesystem may not answer."""
    return {
        path: record
        for path, record, folders in _notes(root)
        if of(record) and not (_is_there(record) or _is_removed(folders))
    }


def removed(
    root: Path = Path("/"), of: Callable[[Path], bool] = lambda _record: True
) -> dict[Path, Path]:
    """As `out_of_reach`: the notes whose record somebody has removed by hand, so that nothing
    brings back what the array had."""
    return {
        path: record
        for path, record, folders in _notes(root)
        if of(record) and not _is_there(record) and _is_removed(folders)
    }


def told_removed(record: Path, device: str) -> str:
    """What that means, and what to do about it."""
    what = "was applied to" if record.parent.name == APPLIED else "a killed run has set on"
    return (
        f"What {what} {device} was recorded in {record}, which somebody has removed. So "
        "the settings of the array itself are not put back: if they were not set anew, they stay "
        f"until it is stopped. `autotune show {device}` has them; set by hand what is to be another"
    )


def noted_folders(root: Path = Path("/")) -> list[Path]:
    """The state folders that the notes name, be they there or not. Looks at none of them."""
    return list(dict.fromkeys(record.parents[1] for _, record, _ in _notes(root)))


def told(note: Path, record: Path) -> str:
    """What such a note means, and what to do about it."""
    folder, uuid = record.parent.parent, note.name.partition("-")[2]
    return (
        f"The state folder {folder} is not mounted, or was replaced, and what autotune has set on "
        f"the array {uuid} is recorded there ({record}). Mount it, and run `autotune restore --all "
        f"--state-dir {folder}`; if it is lost, start the machine anew, or delete {note} and set "
        "it by hand."
    )


def _note(record: Path, root: Path) -> Path:
    return root / NOTES.relative_to("/") / f"{record.parent.name}-{record.stem}"


def _notes(root: Path) -> Iterator[tuple[Path, Path, dict[Path, str]]]:
    """All notes, as `_read` has them. One that is damaged says nothing."""
    for path in sorted((root / NOTES.relative_to("/")).glob("*")):
        with contextlib.suppress(OSError):
            if not path.name.startswith(_NEW) and (read := _read(path)):
                yield path, *read


def _read(note: Path) -> tuple[Path, dict[Path, str]] | None:
    """A record, and what the folders above it were, from the nearest one to the root. None if
    that is not all."""
    name, *lines = note.read_text(errors="surrogateescape").split("\n")
    folders = {}
    for line in lines[:-1]:
        *identity, folder = line.split(" ", 3)
        folders[Path(folder)] = " ".join(identity)
    whole = lines and list(folders) == list(Path(name).parents)
    return (Path(name), folders) if whole else None


def _is_in(folder: Path, noted: tuple[Path, dict[Path, str]]) -> bool:
    """Whether a folder is the one that a noted record is in."""
    record, folders = noted
    return folders.get(record.parent) == _identity(folder)


def _stands_for_another(note: Path, record: Path) -> bool:
    """Whether a note is of another record, which nobody has removed."""
    with contextlib.suppress(OSError):
        if read := _read(note):
            noted, folders = read
            return noted != record and (_is_there(noted) or not _is_removed(folders))
    return False


def _is_there(record: Path) -> bool:
    """Not so where its filesystem fails, as a network's whose server is gone (ESTALE)."""
    try:
        return record.exists()
    except OSError:
        return False


def _is_removed(folders: Mapping[Path, str]) -> bool:
    """Whether the nearest folder that is there is what it was, on the filesystem of the record:
    then nothing is mounted over it, and what is missing below was no mount."""
    own = _filesystem(next(iter(folders.values())))
    with contextlib.suppress(OSError):
        for folder, was in folders.items():
            if folder.exists():
                return was == _identity(folder) and _filesystem(was) == own
    return False


def _filesystem(identity: str) -> tuple[str, str]:
    device, _inode, filesystem = identity.split(" ")
    return device, filesystem


def _identity(folder: Path) -> str:
    """What tells a folder from any other, as `stat` prints it: its device, its number, and its
    filesystem. Disks that are changed for each other have the same device, and may have folders of
    the same number."""
    status, filesystem = folder.stat(), os.statvfs(folder).f_fsid
    # In two words, of which `stat` prints the first one first.
    filesystem = (filesystem & 0xFFFFFFFF) << 32 | filesystem >> 32
    return f"{status.st_dev} {status.st_ino} {filesystem:x}"
