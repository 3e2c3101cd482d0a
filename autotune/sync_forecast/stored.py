"""The forecasts of each array, in a file of their own: a guard reads them without a database."""

import json
from collections.abc import Sequence
from pathlib import Path

from autotune.durable import private_folder, replace
from autotune.errors import AutotuneError
from autotune.sync_forecast.model import Forecast, from_document
from autotune.system import sysfs
from autotune.system.array import Array

KEPT = 50
_NONSENSE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def _path(state_dir: Path, uuid: str) -> Path:
    return state_dir / "forecasts" / f"{uuid}.json"


def keep(forecast: Forecast, state_dir: Path) -> None:
    """Add a forecast. Raise AutotuneError if that cannot be written."""
    path = _path(state_dir, forecast.uuid)
    found = [*_read(path), forecast][-KEPT:]
    try:
        private_folder(path.parent)
        replace(path, json.dumps([each.document() for each in found]), 0o600)
    except OSError as error:
        raise AutotuneError(
            f"The forecast cannot be stored in {path}: {error.strerror}; free some space, or "
            "choose another folder with --state-dir."
        ) from None


def newest(array: Array, state_dir: Path) -> Forecast | None:
    """The newest forecast that still speaks for an array: of the same level, number and size of
    members, and media. A member may have been replaced since: its recovery is what a forecast is
    for. None if there is none, or its file makes no sense."""
    member_kib = int(sysfs.read_or(array.md / "component_size", "0"))
    now = (array.level, array.raid_disks, array.media.value, member_kib)
    found = _read(_path(state_dir, array.uuid))
    return next((f for f in reversed(found) if _kind(f) == now), None)


def _kind(forecast: Forecast) -> tuple[str, int, str, int]:
    return forecast.level, forecast.raid_disks, forecast.media, forecast.member_kib


def every(state_dir: Path) -> list[Forecast]:
    """All that are stored, the newest first."""
    found = [f for path in (state_dir / "forecasts").glob("*.json") for f in _read(path)]
    return sorted(found, key=lambda forecast: -forecast.made_s)


def _read(path: Path) -> Sequence[Forecast]:
    # A forecast can be made again, so what is damaged counts as not there.
    try:
        return [from_document(each) for each in json.loads(path.read_text())]
    except FileNotFoundError:
        return []
    except (*_NONSENSE, OSError):
        return []
