"""What is stored of an array beside its runs: the syncs that were guarded, its newest forecast, the
passes of re-tuning."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from autotune.errors import UsageError
from autotune.guard import stored as guarded
from autotune.guard.past import GuardedSync
from autotune.service import history
from autotune.service.history import PassRecord
from autotune.store.database import Store
from autotune.sync_forecast import stored as forecasts
from autotune.sync_forecast.model import Forecast
from autotune.system.array import find_array


@dataclass(frozen=True)
class StoredArray:
    """`syncs` are the newest first, `passes` the newest last."""

    device: str
    uuid: str
    syncs: tuple[GuardedSync, ...]
    forecast: Forecast | None
    passes: tuple[PassRecord, ...]


def find(name: str, state_dir: Path) -> StoredArray:
    """What is stored of an array by its device or UUID, which need not be on this machine. Raise
    UsageError if that is nothing."""
    device = name if "/" in name else f"/dev/{name}"
    here = ""
    with contextlib.suppress(UsageError):
        array = find_array(name)
        device, here = array.device, array.uuid
    known = _known(state_dir)
    # A name may have been that of several arrays: the one that is here now, else the newest.
    as_uuid = name.replace(":", "").replace("-", "").lower()
    uuids = [uuid for uuid, each in known.items() if device == each or uuid == as_uuid]
    uuid = here if here in uuids else uuids[0] if uuids else as_uuid
    found = StoredArray(
        known.get(uuid, device),
        uuid,
        tuple(sync for sync in guarded.every(state_dir) if sync.uuid == uuid),
        next((each for each in forecasts.every(state_dir) if each.uuid == uuid), None),
        history.load(state_dir, uuid).passes if uuids else (),
    )
    if not (found.syncs or found.forecast or found.passes):
        raise UsageError(
            f"Nothing is stored of {name} that a report could show; `autotune guard`, `forecast` "
            "and `retune` store it. `autotune history` lists the runs."
        )
    return found


def _known(state_dir: Path) -> dict[str, str]:
    """The newest device name of each array, by UUID; the array that was seen last is the first."""
    seen = [(sync.began_s, sync.uuid, sync.device) for sync in guarded.every(state_dir)]
    seen += [(each.made_s, each.uuid, each.device) for each in forecasts.every(state_dir)]
    store = Store.existing(state_dir)
    for run in store.runs() if store is not None else ():
        seen.append((run.started.timestamp(), run.uuid, run.device))
    known: dict[str, str] = {}
    for _, uuid, device in sorted(seen, reverse=True):
        known.setdefault(uuid, device)
    return known
