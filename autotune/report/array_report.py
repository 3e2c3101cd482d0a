"""Everything that a report of an array shows, as one document: how guarded syncs and checks went,
what its forecast says, what became of its profile, its runs, what could be better. Pure."""

import contextlib
import dataclasses
from datetime import UTC, datetime
from typing import Any

from autotune.advice.stored import Kept
from autotune.deploy.status import ArrayStatus
from autotune.errors import RefusalError
from autotune.guard.guarded_sync import GuardedSync
from autotune.report import check, run_report, status, sync_forecast, sync_forecast_document
from autotune.report.advice import advice_document
from autotune.report.stored_array import ArrayHistory, PastRun
from autotune.results import stored_run
from autotune.sync_forecast.model import Forecast
from autotune.untrusted import harmless_throughout

Document = dict[str, Any]
CURVE_POINTS = 40


def document(stored: ArrayHistory) -> Document:
    """An array: rates in bytes/s of each member, latencies in ns, gains as ratios, `low` and `high`
    the ends of 95 % intervals."""
    found: Document = harmless_throughout(
        {
            "kind": "array",
            "device": stored.device,
            "uuid": stored.uuid,
            "host": stored.host,
            "lab": stored.lab,
            "in_force": _in_force(stored.in_force) if stored.in_force else None,
            "syncs": [_sync(sync) for sync in stored.syncs],
            "checks": [check.document(stored.device, each) for each in stored.checks],
            "forecast": _forecast(stored.forecast) if stored.forecast else None,
            "passes": [each.model_dump(mode="json") for each in stored.passes],
            "runs": [_run(run) for run in stored.runs],
            "advice": _advice(stored.advice) if stored.advice else None,
            "missing": _missing(stored),
        }
    )
    return found


def _in_force(now: ArrayStatus) -> Document:
    """As `status --json`, and for how long it is there."""
    return {**status.document(now), "until": status.until(now)}


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


def _run(past: PastRun) -> Document:
    run, workload, given, profile = past.record, "", "", None
    with contextlib.suppress(RefusalError):
        problem = stored_run.read(run)
        workload, given = problem.workload.name, problem.given
    with contextlib.suppress(RefusalError):
        profile = stored_run.profile(run)
    return {
        "run": run.id,
        "began": _moment(run.started.timestamp()),
        "state": run.state,
        "outcome": run.outcome,
        "adopt": run.state == "done" and run.profile is not None,
        "workload": workload,
        "given": given,
        "trials": run.trials,
        "gain": run_report.gain(past.said or {}, profile.evidence if profile else None),
    }


def _advice(kept: Kept) -> Document:
    return {"looked": _moment(kept.looked.timestamp()), **advice_document(kept.advice)}


def _moment(since_epoch_s: float) -> str:
    return datetime.fromtimestamp(since_epoch_s, UTC).isoformat(timespec="seconds")


def _missing(stored: ArrayHistory) -> list[str]:
    """What is not shown, and why."""
    said = []
    if stored.in_force is None:
        said.append(
            "Which profile is in force: the array is not on this machine, or that cannot be read."
        )
    if not stored.syncs:
        said.append("No sync was guarded; `autotune guard` keeps how one goes.")
    if not stored.checks:
        said.append("`autotune check` has not checked the array.")
    if stored.forecast is None:
        said.append("There is no forecast; `autotune forecast` makes one.")
    if not stored.passes:
        said.append("No profile was checked again; `autotune retune` does that.")
    if not stored.runs:
        said.append("There was no run; `autotune run` makes one.")
    if stored.older_runs:
        said.append(f"Older runs ({stored.older_runs}): `autotune history` lists them.")
    if stored.advice is None:
        said.append("No advice is stored; `autotune advise` looks for what could be better.")
    return said
