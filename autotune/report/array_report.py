"""Everything that a report of an array shows, as one document: how guarded syncs went, what its
forecast says, what became of its profile. Pure."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

from autotune.guard.past import GuardedSync
from autotune.report import sync_forecast, sync_forecast_document
from autotune.report.stored_array import StoredArray
from autotune.sync_forecast.model import Forecast
from autotune.untrusted import harmless_throughout

Document = dict[str, Any]
CURVE_POINTS = 40


def document(stored: StoredArray) -> Document:
    """An array: rates in bytes/s of each member, latencies in ns, gains as ratios, `low` and `high`
    the ends of 95 % intervals."""
    found: Document = harmless_throughout(
        {
            "kind": "array",
            "device": stored.device,
            "uuid": stored.uuid,
            "syncs": [_sync(sync) for sync in stored.syncs],
            "forecast": _forecast(stored.forecast) if stored.forecast else None,
            "passes": [each.model_dump(mode="json") for each in stored.passes],
            "missing": _missing(stored),
        }
    )
    return found


def _sync(sync: GuardedSync) -> Document:
    summary = sync.summary
    last = sync.points[-1]
    return {
        **sync.document(),
        "began": _moment(sync.began_s),
        "finish": _moment(sync.finish_s) if sync.finish_s is not None else None,
        "seconds": summary.seconds if summary else last.seconds,
        "held": summary.judged - summary.over if summary else None,
        "share": last.share,
        "worst_p99_ns": max((p.worst_p99_ns for p in sync.points if p.worst_p99_ns), default=None),
    }


def _forecast(forecast: Forecast) -> Document:
    """As `forecast --json`, and what it says of speeds between those that were measured."""
    # A limit that no place reaches is none.
    most = max(forecast.platter.kib_s)
    least = min((p.kib_s for p in forecast.points if p.kib_s), default=most)
    steps = CURVE_POINTS - 1 if least < most else 0
    limits = [most * (least / most) ** (n / max(steps, 1)) for n in range(steps, -1, -1)]
    return {
        **sync_forecast_document.document(forecast),
        "made": _moment(forecast.made_s),
        "said": list(sync_forecast.lines(forecast, None, None)),
        "points": [dataclasses.asdict(point) for point in forecast.points],
        "curve": [_under(forecast, limit) for limit in limits],
    }


def _under(forecast: Forecast, limit_kib_s: float) -> Document:
    """What a limit gives; `kib_s` is the mean speed that a sync reaches under it, and what is
    felt then."""
    reached = forecast.member_kib / forecast.platter.seconds(forecast.member_kib, limit_kib_s)
    times = sync_forecast_document.at_speed(forecast, limit_kib_s)["seconds"]
    return {**sync_forecast_document.at_speed(forecast, reached), "seconds": times}


def _moment(since_epoch_s: float) -> str:
    return datetime.fromtimestamp(since_epoch_s, UTC).isoformat(timespec="seconds")


def _missing(stored: StoredArray) -> list[str]:
    """What is not shown, and why."""
    said = []
    if not stored.syncs:
        said.append("No sync was guarded; `autotune guard` keeps how one goes.")
    if stored.forecast is None:
        said.append("There is no forecast; `autotune forecast` makes one.")
    if not stored.passes:
        said.append("No profile was checked again; `autotune retune` does that.")
    said.append("Runs have reports of their own; `autotune history` lists them.")
    return said
