"""Whether others than root could change what root is about to run or to obey.

Journals are looked at in the same way (`durable.open_roots_own`). Here the folders above count
too: whoever may write in one of them may put another file in the place of this one.
"""

import os
import pwd
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from autotune.durable import lab_user, obeyed
from autotune.errors import RefusalError, UsageError
from autotune.untrusted import plain

_MOST_LINKS = 40


def fault(path: Path) -> str | None:
    """Why others than root (or who runs this) could change what is at a path, as a sentence that
    says what to do; None if they cannot. What does not exist is judged as far as it does."""
    return next(filter(None, map(_own_fault, _way_to(path.absolute()))), None)


def faults_below(folders: Iterable[Path]) -> Iterator[str]:
    """The same of everything in these folders, as deep as it goes, also where links lead."""
    left, seen = [os.path.realpath(folder) for folder in folders], set()
    while left:
        folder = left.pop()
        if folder in seen or not Path(folder).is_dir():
            continue
        seen.add(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                linked = entry.is_symlink()
                found = fault(Path(entry)) if linked else _own_fault(Path(entry))
                if found:
                    yield found
                if entry.is_dir():
                    left.append(os.path.realpath(entry.path) if linked else entry.path)


def refuse(path: Path, what: str) -> None:
    """Raise UsageError, calling it `what`, if root would obey what others can change. Others than
    root may read what they like."""
    found = fault(path) if os.geteuid() == 0 else None
    if found:
        raise UsageError(f"{what} is not used by root: {found}")


def refuse_program(command: Path) -> None:
    """Raise RefusalError if a service that calls this very program as root would run what others
    can change: the command, its interpreter, or any of the packages that it loads."""
    if os.geteuid() != 0:
        return
    found = next(_faults_of_program(command), None)
    if found:
        raise RefusalError(
            f"Root would run what others can change: {found} Or install the package, or the wheel "
            "where only root writes: `python3 -m venv /opt/autotune`, then "
            "`/opt/autotune/bin/pip install` and the wheel's file; call that one."
        )


def refuse_words(words: Iterable[str]) -> str | None:
    """Why root should not run a command of these words: the program, or a file or folder named in
    it (`run-parts FOLDER`), is such that others can change it. None for anybody else."""
    if os.geteuid() != 0:
        return None
    files = (Path(word) for word in words if word.startswith("/"))
    return next(
        filter(None, (fault(file) for file in files if file.is_file() or file.is_dir())), None
    )


def _faults_of_program(command: Path) -> Iterator[str]:
    package = Path(__file__).parent
    entries = [Path(entry) for entry in sys.path]
    for path in (command, Path(sys.executable), package, *entries):
        found = fault(path)
        if found:
            yield found
    # Beside the command lie programs of others, which it does not load.
    yield from faults_below((package, *(e for e in entries if e != command.resolve().parent)))


def _way_to(path: Path) -> Iterator[Path]:
    """Everything on the way to a file, links and what they lead to; the file last."""
    links = 0
    parts, at = list(path.parts), Path("/")
    while parts:
        part = parts.pop(0)
        at = Path("/") if part == "/" else at.parent if part == ".." else at / part
        yield at
        if at.is_symlink() and links < _MOST_LINKS:
            links += 1
            parts = [*at.readlink().parts, *parts]
            at = at.parent


def _own_fault(path: Path) -> str | None:
    try:
        return _judged(str(path), path.lstat())
    except OSError:
        return None


def _judged(path: str, status: os.stat_result) -> str | None:
    if status.st_uid not in obeyed():
        return f"{plain(path)} belongs to {_user(status.st_uid)}; give it to root (chown root)."
    # A link is what its folder lets it be. In a sticky folder only owners replace their own.
    sticky = stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX
    if stat.S_ISLNK(status.st_mode) or sticky or status.st_uid in lab_user():
        return None
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return (
            f"{plain(path)} can be written to by others than its owner; forbid that (chmod go-w)."
        )
    return None


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"the user {uid}"
