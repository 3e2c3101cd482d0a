"""Where journals and records of what is applied lie, noted until the next boot whatever the
--state-dir: that may be on a filesystem that is not mounted just now. Light, as the journal."""

import contextlib
from collections.abc import Callable
from pathlib import Path

from autotune.system.stack import is_mountpoint

NOTES = Path("/run/autotune/records")
"""A file for each of them, named by its kind and the array's UUID. A boot takes them."""


def note(record: Path, root: Path = Path("/")) -> None:
    """Note where a record lies, that is there. On a full /run that is left out: it is needed only
    where the record is out of reach."""
    with contextlib.suppress(OSError):
        path = _note(record, root)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        mount = next(parent for parent in record.resolve().parents if is_mountpoint(parent))
        text = f"{mount.stat().st_dev}\n{mount}\n{record.resolve()}\n"
        path.write_text(text, errors="surrogateescape")


def forget(record: Path, root: Path = Path("/")) -> None:
    """Nothing that the record speaks of is in force any more. To be called before it is removed:
    killed between, nothing untrue is noted."""
    with contextlib.suppress(OSError, ValueError):
        path = _note(record, root)
        if _read(path)[2] == record.resolve():
            path.unlink()


def out_of_reach(
    root: Path = Path("/"), of: Callable[[Path], bool] = lambda _record: True
) -> dict[Path, Path]:
    """The notes whose record is not there, since the filesystem that it is on is not, each with
    where it was written. What somebody has removed is nobody's any more. `of`: only those; others
    are not looked at, since a filesystem may not answer."""
    found = {}
    for path in sorted((root / NOTES.relative_to("/")).glob("*")):
        # One that was cut short says nothing.
        with contextlib.suppress(OSError, ValueError):
            number, mount, record = _read(path)
            if of(record) and not (_is_there(record) or _is_mounted(mount, number)):
                found[path] = record
    return found


def told(note: Path, record: Path) -> str:
    """What such a note means, and what to do about it."""
    folder, uuid = record.parent.parent, note.name.partition("-")[2]
    return (
        f"The state folder {folder} is not mounted, and what autotune has set on the array {uuid} "
        f"is recorded there ({record}). Mount it, and run `autotune restore --all --state-dir "
        f"{folder}`; if it is lost, start the machine anew, or delete {note} and set it by hand."
    )


def _note(record: Path, root: Path) -> Path:
    return root / NOTES.relative_to("/") / f"{record.parent.name}-{record.stem}"


def _read(note: Path) -> tuple[int, Path, Path]:
    """The number of the filesystem, where it was mounted, and the record. ValueError if that is not
    all."""
    number, mount, name, end = note.read_text(errors="surrogateescape").split("\n")
    if end or not name.endswith(".jsonl"):
        raise ValueError
    return int(number), Path(mount), Path(name)


def _is_there(record: Path) -> bool:
    """Not so where its filesystem fails, as a network's whose server is gone (ESTALE)."""
    try:
        return record.exists()
    except OSError:
        return False


def _is_mounted(mount: Path, number: int) -> bool:
    try:
        return is_mountpoint(mount) and mount.stat().st_dev == number
    except OSError:
        return False
