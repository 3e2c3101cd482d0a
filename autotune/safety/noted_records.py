"""Where journals and records of what is applied lie, noted until the next boot whatever the
--state-dir: that may be on a filesystem that is not mounted just now. Light, as the journal."""

import contextlib
from pathlib import Path

NOTES = Path("/run/autotune/records")
"""A file for each of them, named by its kind and the array's UUID. A boot takes them."""


def note(record: Path, root: Path = Path("/")) -> None:
    """Note where a record lies, that is there. On a full /run that is left out: it is needed only
    where the record is out of reach."""
    with contextlib.suppress(OSError):
        path = _note(record, root)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = f"{record.stat().st_dev} {record.absolute()}\n"
        path.write_text(text, errors="surrogateescape")


def forget(record: Path, root: Path = Path("/")) -> None:
    """Nothing that the record speaks of is in force any more. To be called before it is removed:
    killed between, nothing untrue is noted."""
    with contextlib.suppress(OSError, ValueError):
        path = _note(record, root)
        if _read(path)[1] == record.absolute():
            path.unlink()


def out_of_reach(root: Path = Path("/")) -> dict[Path, Path]:
    """The notes whose record is not there, since the filesystem that it is on is not, each with
    where it was written. What somebody has removed is nobody's any more."""
    found = {}
    notes = root / NOTES.relative_to("/")
    for path in sorted(notes.glob("*")) if notes.is_dir() else ():
        # One that was cut short says nothing.
        with contextlib.suppress(OSError, ValueError):
            number, record = _read(path)
            if not record.exists():
                there = next(each for each in record.parents if each.exists())
                if there.stat().st_dev != number:
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


def _read(note: Path) -> tuple[int, Path]:
    """The number of the filesystem, and the record. ValueError if that is not all."""
    number, _, name = note.read_text(errors="surrogateescape").partition(" ")
    if not name.endswith(".jsonl\n"):
        raise ValueError
    return int(number), Path(name.removesuffix("\n"))
