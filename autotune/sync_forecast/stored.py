"""The forecasts of each array, in a file of their own: a guard reads them without a database."""

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from autotune.durable import private_folder, replace
from autotune.errors import AutotuneError
from autotune.preflight.environment import place
from autotune.sync_forecast.model import Forecast, from_document
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.untrusted import NONSENSE

KEPT = 50


def _path(state_dir: Path, uuid: str) -> Path:
    return state_dir / "forecasts" / f"{uuid}.json"


def keep(forecast: Forecast, state_dir: Path) -> Path | None:
    """Add a forecast. What is not understood of those before it stays as it is; a file that is no
    list of them is put aside, and its new name returned. Raise
    AutotuneError if that cannot be written."""
    path, aside = _path(state_dir, forecast.uuid), None
    try:
        private_folder(path.parent)
        try:
            found = _entries(path)
        except FileNotFoundError:
            found = []
        except NONSENSE:
            aside = path.replace(path.with_suffix(".damaged"))
            found = []
        here = dataclasses.replace(forecast, **place())
        replace(path, json.dumps([*found, here.document()][-KEPT:]), 0o600)
    except OSError as error:
        raise AutotuneError(
            f"The forecast cannot be stored in {path}: {error.strerror}; free some space, or "
            "choose another folder with --state-dir."
        ) from None
    return aside


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
        entries = _entries(path)
    except (*NONSENSE, OSError):
        return []
    found = []
    for entry in entries:
        # One may be of a newer version.
        with contextlib.suppress(*NONSENSE):
            found.append(from_document(entry))
    return found


def _entries(path: Path) -> list[Any]:
    """As stored. OSError if they cannot be read, one of `NONSENSE` if they are no list."""
    entries = json.loads(path.read_text())
    if not isinstance(entries, list):
        raise TypeError("no list")
    return entries
