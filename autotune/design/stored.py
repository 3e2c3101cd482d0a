"""What designs found, kept by number, so that it outlives the terminal."""

import json
import re
from pathlib import Path
from typing import Any

from autotune import durable
from autotune.errors import AutotuneError, UsageError
from autotune.untrusted import read_text

MOST_BYTES = 16 << 20
MOST_KEPT = 200
NAME = re.compile(r"design-(\d{1,9})")


def _folder(state_dir: Path) -> Path:
    return state_dir / "designs"


def names(state_dir: Path) -> list[str]:
    """The designs that are kept, the oldest first."""
    found = (NAME.fullmatch(path.stem) for path in _folder(state_dir).glob("*.json"))
    return [match[0] for match in sorted(filter(None, found), key=lambda match: int(match[1]))]


def keep(document: dict[str, Any], state_dir: Path) -> str:
    """Keep a design under the next number; return its name. Raise AutotuneError if the disk does
    not take it."""
    kept = names(state_dir)
    name = f"design-{int(kept[-1].partition('-')[2]) + 1 if kept else 1}"
    path = _folder(state_dir) / f"{name}.json"
    try:
        durable.private_folder(path.parent)
        durable.replace(path, json.dumps({**document, "name": name}, indent=2) + "\n")
        for old in kept[: -(MOST_KEPT - 1)]:
            (path.parent / f"{old}.json").unlink(missing_ok=True)
    except OSError as error:
        raise AutotuneError(f"The design cannot be kept in {path}: {error.strerror}.") from None
    return name


def find(name: str, state_dir: Path) -> dict[str, Any]:
    """A design by its name. Raise UsageError if there is none, or it cannot be read."""
    kept = names(state_dir)
    if name not in kept:
        there = f"there are {', '.join(kept[-9:])}" if kept else "none was made yet"
        raise UsageError(f"There is no {name}; {there}.")
    path = _folder(state_dir) / f"{name}.json"
    text = read_text(path, MOST_BYTES, "The design")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise UsageError(
            f"The design {path} is damaged; remove it, and run `autotune design` anew."
        )
    return document
