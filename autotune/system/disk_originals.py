"""What disks' files read before all profiles, and what was set there last, until the next boot.

udev's rules note it where they set a disk (`export/disk-originals.sh`), and so do the commands that
apply a profile, since a disk may go from one array to another. It is kept by the disk, be it that a
partition of it, or all that is on it, is gone. Light.
"""

import contextlib
import errno
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.system import sysfs

NOTES = Path("/run/autotune/disks")
"""The folder of the notes, with a folder for each disk. A boot takes it."""
BEING_SET = "*"
"""Where udev is about to set a file, or was cut short in that."""
_NUMBER, _SCHEDULER = re.compile(r"-?[0-9]+|\*|"), re.compile(r"[\w-]+|\*|")


@dataclass(frozen=True)
class Note:
    """Of one file of a disk: what it read before all profiles ("": it was not there, under the
    scheduler of then), what it was set to last, and the UUID of the array for which."""

    original: str
    set_to: str
    uuid: str


def noted(file: Path) -> Note | None:
    """What is noted of a file of a disk that is there; None if nothing is."""
    with contextlib.suppress(OSError):
        return _read(_place(file))
    return None


def noted_for(uuid: str, root: Path) -> dict[Path, Note]:
    """The notes of the files that were last set for an array, by file, of disks that are there."""
    return {file: note for file, note in _all(root).items() if note.uuid == uuid}


def noted_of(disk: Path) -> dict[Path, Note]:
    """The notes of a disk's files, by file, if it is there."""
    return {f: note for f, note in _all(disk.parents[2]).items() if sysfs.device(f) == disk}


def noted_arrays(root: Path) -> list[str]:
    """The UUIDs of the arrays for which something is noted of disks that are there."""
    return sorted({note.uuid for note in _all(root).values()})


def _all(root: Path) -> dict[Path, Note]:
    found = {}
    for folder in sorted((root / NOTES.relative_to("/")).glob("*-*")):
        name, _, inode = folder.name.rpartition("-")
        disk = root / "sys/block" / name
        if sysfs.identity(disk) != inode:
            continue
        for place in sorted(path for path in folder.rglob("*") if path.is_file()):
            with contextlib.suppress(OSError):
                note = _read(place)
                if note is not None:
                    found[disk / place.relative_to(folder)] = note
    return found


def take_down(file: Path, note: Note) -> None:
    """Note this of a file of a disk. Raise AutotuneError if it cannot be written."""
    try:
        place = _place(file)
        if place.parent.exists() and noted(file) == note:
            return
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = place.with_name(f"{place.name}.new")
        new.write_text(f"{note.original}\n{note.set_to}\n{note.uuid}\n")
        new.replace(place)
    except OSError as error:
        raise AutotuneError(
            f"What {sysfs.device(file).name} had before cannot be noted in {NOTES} "
            f"({error.strerror}), so nothing is changed; make room there, or make it writable."
        ) from None


def forget(uuid: str, root: Path, undone: Container[Path]) -> None:
    """Remove the notes of files that were last set for an array, all of which that was known is
    `undone`. What udev has set meanwhile, on a disk that has just joined, keeps its note, and so
    does what it is about to set: it then notes what that was."""
    notes = noted_for(uuid, root)
    since = {file for file, note in notes.items() if _is_set_since(file, note, undone)}
    for file, note in notes.items():
        # What goes with a scheduler is noted when that is switched.
        if not {file, sysfs.device(file) / "queue/scheduler"} & since:
            with contextlib.suppress(OSError, AutotuneError):
                if note.set_to == BEING_SET:
                    take_down(file, replace(note, set_to=note.original))
                else:
                    _place(file).unlink()
    _remove_what_is_over(root)


def forget_undone(uuid: str, root: Path, back: Mapping[Path, str]) -> None:
    """Remove the notes of files that are `back` to the original: what was set before, set by their
    owner later, is not ours then."""
    for file, note in noted_for(uuid, root).items():
        if note.original == back.get(file) and note.set_to != BEING_SET:
            with contextlib.suppress(OSError):
                _place(file).unlink()
    _remove_what_is_over(root)


def _remove_what_is_over(root: Path) -> None:
    """Empty folders, and the notes of disks that are gone: one that comes back is another one, to
    the kernel, with its defaults."""
    notes, disks = root / NOTES.relative_to("/"), root / "sys/block"
    known = [folder.name.rpartition("-") for folder in notes.glob("*-*")] if disks.is_dir() else []
    gone = {notes / f"{n}-{inode}" for n, _, inode in known if sysfs.identity(disks / n) != inode}
    for path in sorted(notes.rglob("*"), reverse=True):
        with contextlib.suppress(OSError):
            if path.is_dir():
                # One that is not empty stays.
                path.rmdir()
            elif gone.intersection(path.parents):
                path.unlink()


def _is_set_since(file: Path, note: Note, undone: Container[Path]) -> bool:
    if note.set_to == BEING_SET:
        return file not in undone
    try:
        return note.set_to not in ("", note.original) and note.set_to == sysfs.original(file)
    except OSError:
        # Throttling that is off cannot be read.
        return False


def _place(file: Path) -> Path:
    """Where the notes of a file are. OSError if that is of no disk that is there."""
    disk = sysfs.device(file)
    if disk.parts[-3:-1] != ("sys", "block"):
        raise FileNotFoundError(errno.ENOENT, "no file of a disk", str(file))
    folder = disk.parents[2] / NOTES.relative_to("/") / f"{disk.name}-{disk.stat().st_ino}"
    return folder / file.relative_to(disk)


def _read(place: Path) -> Note | None:
    """None if it is not whole, or damaged, or is being written."""
    lines = place.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(lines) != 3 or place.suffix == ".new":
        return None
    known = _SCHEDULER if place.name == "scheduler" else _NUMBER
    note = Note(*lines)
    return note if known.fullmatch(note.original) and known.fullmatch(note.set_to) else None
