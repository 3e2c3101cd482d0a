"""Several files that are there together, or not at all."""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from autotune.durable import sync_folder, write_beside
from autotune.errors import AutotuneError


def write_all(files: Mapping[Path, str]) -> None:
    """Write all of the files durably, or leave all of them as they were. Raise AutotuneError if
    they cannot be written. They come into their places in this order, once all are written beside
    them (`durable.beside`)."""
    before = {path: path.read_bytes() if path.exists() else None for path in files}
    made: list[Path] = []
    parts: dict[Path, Path] = {}
    try:
        for path, text in files.items():
            _make_folder(path.parent, made)
            # Whatever the umask: `status` may be asked by anybody, and only root may change it.
            parts[path] = write_beside(path, text, 0o644)
        for path, part in parts.items():
            part.replace(path)
            sync_folder(path.parent)
    except OSError as error:
        _undo(before, parts, made)
        raise AutotuneError(
            f"{error.filename or 'A file'} cannot be written ({error.strerror}), so nothing was "
            "persisted."
        ) from None


def _make_folder(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, and add those that were not there to `made`."""
    if not folder.exists():
        _make_folder(folder.parent, made)
        folder.mkdir()
        made.insert(0, folder)
        folder.chmod(0o755)
        sync_folder(folder.parent)


def _undo(
    before: Mapping[Path, bytes | None], parts: Mapping[Path, Path], made: list[Path]
) -> None:
    for part in parts.values():
        part.unlink(missing_ok=True)
    for path, data in before.items():
        # Where that fails, the new one stays: a half one would be worse.
        with contextlib.suppress(OSError):
            if data is None:
                path.unlink(missing_ok=True)
            elif path.read_bytes() != data:
                # Whatever is in it: in this encoding each byte is a letter.
                text = data.decode("latin-1")
                write_beside(path, text, 0o644, "latin-1").replace(path)
    for folder in made:
        # One that is not empty stays, and so does a mount point in the sandbox of the unit.
        with contextlib.suppress(OSError):
            folder.rmdir()
