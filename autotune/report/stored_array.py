"""What is stored of an array: its runs, the syncs that were guarded, its checks, its newest
forecast, the passes of re-tuning, what could be better about it."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.advice import stored as advices
from autotune.advice.stored import Kept
from autotune.checking import stored as checked
from autotune.checking.record import CheckRecord
from autotune.deploy.status import ArrayStatus, status
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.guard import stored as guarded
from autotune.guard.guarded_sync import GuardedSync
from autotune.preflight.environment import Host, place
from autotune.report.history import as_it_is
from autotune.results import stored_run
from autotune.service import history
from autotune.service.history import PassRecord
from autotune.store import RunRecord
from autotune.store.database import Store
from autotune.sync_forecast import stored as forecasts
from autotune.sync_forecast.model import Forecast
from autotune.system.array import Array, find_array

MOST_RUNS = 20


@dataclass(frozen=True)
class PastRun:
    """A run, and what it said at its end; None if that is not stored."""

    record: RunRecord
    said: Mapping[str, Any] | None


@dataclass(frozen=True)
class ArrayHistory:
    """`runs` (no more than MOST_RUNS), `syncs` and `checks` are the newest first, `passes` the
    newest last. `older_runs`: so many more there are."""

    device: str
    uuid: str
    syncs: tuple[GuardedSync, ...]
    checks: tuple[CheckRecord, ...]
    forecast: Forecast | None
    passes: tuple[PassRecord, ...]
    runs: tuple[PastRun, ...]
    older_runs: int
    advice: Kept | None
    host: str = ""
    lab: bool = False
    """Where the array is, or was when something was kept of it; "" if neither is known."""
    in_force: ArrayStatus | None = None
    """Its profile, if the array is on this machine and that can be read."""


def find(name: str, state_dir: Path) -> ArrayHistory:
    """What is stored of an array by its device or UUID, which need not be on this machine. Raise
    UsageError if that is nothing, AutotuneError if it cannot be read."""
    device = name if "/" in name else f"/dev/{name}"
    array, here = None, ""
    with contextlib.suppress(UsageError):
        array = find_array(name)
        device, here = array.device, array.uuid
    seen = sorted(_seen(state_dir), reverse=True)
    # A name may have been that of several arrays: the one that is here now, else the newest. An
    # array may have had several names: any of them.
    as_uuid = name.replace(":", "").replace("-", "").lower()
    uuids = [uuid for _, uuid, each in seen if device == each or uuid == as_uuid]
    if not uuids:
        raise UsageError(
            f"Nothing is stored of {name} that a report could show; `autotune run`, `guard`, "
            "`check`, `forecast`, `retune` and `advise` store it."
        )
    uuid = here if here in uuids else uuids[0]
    store = Store.existing(state_dir)
    checks = checked.load(checked.path_of(state_dir, uuid)).checks[::-1]
    runs = store.runs(uuid) if store else []
    syncs = tuple(sync for sync in guarded.every(state_dir) if sync.uuid == uuid)
    forecast = next((each for each in forecasts.every(state_dir) if each.uuid == uuid), None)
    return ArrayHistory(
        next(each for _, other, each in seen if other == uuid),
        uuid,
        syncs,
        checks,
        forecast,
        history.load(state_dir, uuid).passes,
        tuple(PastRun(as_it_is(r), store.result(r.id)) for r in runs[:MOST_RUNS] if store),
        max(0, len(runs) - MOST_RUNS),
        advices.newest(state_dir, uuid),
        in_force=_in_force(array, state_dir) if array is not None and uuid == here else None,
        **(place() if uuid == here else _place_of(runs, [*syncs[:1], forecast, *checks[:1]])),
    )


def _in_force(array: Array, state_dir: Path) -> ArrayStatus | None:
    """None if it cannot be read, as by others than root: the rest of the page can be shown."""
    with contextlib.suppress(AutotuneError, OSError):
        return status(array, state_dir)
    return None


def _place_of(
    runs: Sequence[RunRecord], others: Sequence[GuardedSync | Forecast | CheckRecord | None]
) -> Host:
    """Where the newest of an array's runs was, or what else is kept of it."""
    for run in runs[:1]:
        with contextlib.suppress(RefusalError):
            problem = stored_run.read(run)
            return Host(host=problem.host, lab=problem.lab)
    known = (Host(host=each.host, lab=each.lab) for each in others if each is not None)
    return next((each for each in known if each["host"]), Host(host="", lab=False))


def _seen(state_dir: Path) -> Iterator[tuple[float, str, str]]:
    """When which array was there, and under which name."""
    for sync in guarded.every(state_dir):
        yield sync.began_s, sync.uuid, sync.device
    for forecast in forecasts.every(state_dir):
        yield forecast.made_s, forecast.uuid, forecast.device
    for uuid, checks in checked.by_uuid(state_dir).items():
        if checks.checks:
            yield checks.checks[-1].began.timestamp(), uuid, checks.device
    for kept in advices.every(state_dir):
        yield kept.looked.timestamp(), kept.uuid, kept.advice.device
    store = Store.existing(state_dir)
    for run in store.runs() if store is not None else ():
        yield run.started.timestamp(), run.uuid, run.device
