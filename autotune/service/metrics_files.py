"""The files of metrics: one for all arrays, beside it one for each array's guard and its checks."""

import contextlib
import glob
from pathlib import Path

GUARD, CHECK = "guard", "check"
MOST_BYTES = 1 << 16


def metrics_file(file: Path, kind: str, device: str) -> Path:
    """Where the guard or the checks of an array write, beside the `file` of all arrays."""
    return file.with_name(f"{file.stem}-{kind}-{Path(device).name}.prom")


def remove_earlier_names(file: Path, kind: str, device: str, uuid: str) -> None:
    """Remove what was written for the same array while it had another name, which would never be
    written again, and be alarming for ever."""
    now = metrics_file(file, kind, device)
    for other in _of_kind(file, kind):
        if other != now and _tells_of(other, uuid):
            # One that cannot be removed keeps no guard from its work.
            with contextlib.suppress(OSError):
                other.unlink()


def remove_all(file: Path) -> list[Path]:
    """Remove the file and those beside it; return them."""
    beside = (*_of_kind(file, GUARD), *_of_kind(file, CHECK))
    there = [path for path in (file, *beside) if path.is_file()]
    for path in there:
        path.unlink()
    return there


def _of_kind(file: Path, kind: str) -> list[Path]:
    return sorted(file.parent.glob(f"{glob.escape(file.stem)}-{kind}-*.prom"))


def _tells_of(path: Path, uuid: str) -> bool:
    # Others may write to the folder: what is no file may keep a reader waiting.
    if not uuid or path.is_symlink() or not path.is_file():
        return False
    with contextlib.suppress(OSError), path.open("rb") as file:
        return f'uuid="{uuid}"'.encode() in file.read(MOST_BYTES)
    return False
