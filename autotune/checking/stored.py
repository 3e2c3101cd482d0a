"""The checks of each array, in a file of their own."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from autotune import durable
from autotune.checking.record import Book
from autotune.errors import AutotuneError
from autotune.untrusted import first_fault, read_file

MAX_FILE_BYTES = 1 << 20


def path_of(state_dir: Path, uuid: str) -> Path:
    return state_dir / "checks" / f"{uuid}.json"


def load(path: Path) -> Book:
    """The checks of an array; none at first. AutotuneError if they cannot be read."""
    try:
        return Book.model_validate_json(read_file(path, MAX_FILE_BYTES))
    except FileNotFoundError:
        return Book()
    except ValidationError as error:
        fault = f"is damaged ({first_fault(error)})"
    except ValueError as error:
        fault = str(error)
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    raise AutotuneError(f"{path} {fault}; remove it, and the next check begins at the start.")


def save(book: Book, path: Path) -> None:
    """Whole or not at all. OSError, with the file's name, if the disk does not take it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        durable.replace(path, book.model_dump_json(indent=1) + "\n", 0o600)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def by_uuid(state_dir: Path) -> Mapping[str, Book]:
    """Those of all arrays that were ever checked with this folder. AutotuneError as `load`."""
    return {path.stem: load(path) for path in sorted((state_dir / "checks").glob("*.json"))}


def every(state_dir: Path) -> Sequence[Book]:
    """The same without the arrays' UUIDs."""
    return list(by_uuid(state_dir).values())
