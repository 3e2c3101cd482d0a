"""Where journals and records of what is applied lie, noted until the next boot whatever the
--state-dir: that may be on a filesystem that is not mounted just now, or under another one. Light,
as the journal."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

NOTES = Path("/run/autotune/records")
"""A file for each of them, named by its kind and the array's UUID. A boot takes them."""


def note(record: Path, root: Path = Path("/")) -> None:
    """Note where a record lies, that is there. On a full /run that is left out: it is needed only
    where the record is out of reach."""
    with contextlib.suppress(OSError):
        path = _note(record, root)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = f"{_identity(record.parent)}\n{record.resolve()}\n"
        path.write_text(text, errors="surrogateescape")


def forget(record: Path, root: Path = Path("/")) -> None:
    """Nothing that the record speaks of is in force any more. To be called before it is removed:
    killed between, nothing untrue is noted."""
    with contextlib.suppress(OSError, ValueError):
        path = _note(record, root)
        identity, noted = _read(path)
        # Its filesystem may be mounted somewhere else by now.
        if noted == record.resolve() or identity == _identity(record.parent):
            path.unlink()


def out_of_reach(
    root: Path = Path("/"), of: Callable[[Path], bool] = lambda _record: True
) -> dict[Path, Path]:
    """The notes whose record is not there, nor the folder that it was in, each with where it was
    written. What somebody has removed from there is nobody's any more. `of`: only those; others
    are not looked at, since a filesystem may not answer."""
    found = {}
    for path in sorted((root / NOTES.relative_to("/")).glob("*")):
        # One that was cut short says nothing.
        with contextlib.suppress(OSError, ValueError):
            identity, record = _read(path)
            if of(record) and not (_is_there(record) or _is_same(record.parent, identity)):
                found[path] = record
    return found


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


def _read(note: Path) -> tuple[str, Path]:
    """What the folder was, and the record in it. ValueError if that is not all."""
    identity, name, end = note.read_text(errors="surrogateescape").split("\n")
    if end or not name.endswith(".jsonl"):
        raise ValueError
    return identity, Path(name)


def _is_there(record: Path) -> bool:
    """Not so where its filesystem fails, as a network's whose server is gone (ESTALE)."""
    try:
        return record.exists()
    except OSError:
        return False


def _is_same(folder: Path, identity: str) -> bool:
    try:
        return _identity(folder) == identity
    except OSError:
        return False


def _identity(folder: Path) -> str:
    """What tells a folder from any other, as `stat` prints it. Disks that are changed for each
    other have the same number of a device, and may have folders of the same number."""
    status, filesystem = folder.stat(), os.statvfs(folder).f_fsid
    # In two words, of which `stat` prints the first one first.
    filesystem = (filesystem & 0xFFFFFFFF) << 32 | filesystem >> 32
    return f"{status.st_dev} {status.st_ino} {filesystem:x}"
