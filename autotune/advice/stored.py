"""The newest findings of each array, in a file of their own: a report shows them later, and
elsewhere."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from autotune.advice.finding import Advice
from autotune.durable import private_folder, replace
from autotune.untrusted import MOST_KEPT_BYTES, read_file


@dataclass(frozen=True)
class Kept:
    """What was found on an array, and when."""

    uuid: str
    looked: datetime
    advice: Advice


def path_of(state_dir: Path, uuid: str) -> Path:
    return state_dir / "advice" / f"{uuid}.json"


def keep(kept: Kept, state_dir: Path) -> None:
    """In place of what was found before. OSError if it cannot be written."""
    path = path_of(state_dir, kept.uuid)
    private_folder(path.parent)
    document = {**asdict(kept), "looked": kept.looked.isoformat()}
    replace(path, json.dumps(document, indent=1) + "\n", 0o600)


def newest(state_dir: Path, uuid: str) -> Kept | None:
    """What was found of late; None if nobody looked, or its file makes no sense."""
    try:
        text = read_file(path_of(state_dir, uuid), MOST_KEPT_BYTES)
        return TypeAdapter(Kept).validate_json(text)
    # It is soon found again, so what is damaged counts as not there.
    except (OSError, ValueError, ValidationError):
        return None


def every(state_dir: Path) -> list[Kept]:
    """That of all arrays."""
    found = [newest(state_dir, path.stem) for path in (state_dir / "advice").glob("*.json")]
    return [kept for kept in found if kept is not None]
