"""A forecast of syncs for programs."""

from typing import Any

from autotune.problem.figure import Estimate
from autotune.report.sync_forecast import expected_p99, rows
from autotune.sync_forecast.model import ACTIONS, REBUILD, Forecast


def document(
    forecast: Forecast, within_s: float | None = None, ceiling_ns: float | None = None
) -> dict[str, Any]:
    """The same for programs: KiB/s of each member, seconds, ns; estimates with their 95 %
    intervals."""
    speeds = [
        {
            "kib_s": min(kib_s, forecast.full_kib_s),
            "seconds": _times(forecast, kib_s),
            "p50_ns": _estimate(point.p50),
            "p99_ns": _estimate(point.p99),
            "expected_p99_ns": {
                action: _estimate(
                    expected_p99(forecast, point, action, min(kib_s, forecast.full_kib_s))
                )
                for action in ACTIONS
            },
            "samples": point.samples,
        }
        for point, kib_s in rows(forecast)
    ]
    idle = forecast.points[0] if forecast.points and not forecast.points[0].kib_s else None
    speed = forecast.speed_for(within_s) if within_s is not None else None
    slow = forecast.speed_under(ceiling_ns, REBUILD) if ceiling_ns is not None else None
    knee = forecast.knee
    return {
        "kind": "forecast",
        "device": forecast.device,
        "uuid": forecast.uuid,
        "made_s": forecast.made_s,
        "seconds": forecast.seconds,
        "member_kib": forecast.member_kib,
        "limit_kib_s": forecast.limit_kib_s,
        "full_kib_s": forecast.full_kib_s,
        "places": [list(each) for each in _places(forecast)],
        "places_measured": forecast.places_measured,
        "source": forecast.source,
        "busy": forecast.busy,
        "users_share": forecast.users_share,
        "stopped_ns": forecast.stopped_ns,
        "knee_kib_s": knee.kib_s if knee else None,
        "idle_p99_ns": _estimate(idle.p99) if idle else None,
        "speeds": speeds,
        "now": {
            "kib_s": forecast.limit_kib_s,
            "seconds": {a: _estimate(forecast.time(a, forecast.limit(a))) for a in ACTIONS},
            "p99_ns": {a: _estimate(forecast.p99(a, forecast.limit(a))) for a in ACTIONS},
        },
        "within": within_s
        and {
            "seconds": within_s,
            "needed": _needed(forecast, speed),
        },
        "under": ceiling_ns
        and {
            "ceiling_ns": ceiling_ns,
            "needed": _needed(forecast, slow),
        },
    }


def _places(forecast: Forecast) -> list[tuple[float, float]]:
    return list(zip(forecast.platter.places, forecast.platter.kib_s, strict=True))


def _times(forecast: Forecast, kib_s: float) -> dict[str, Any]:
    return {action: _estimate(forecast.time(action, kib_s)) for action in ACTIONS}


def _needed(forecast: Forecast, kib_s: float | None) -> dict[str, Any] | None:
    return at_speed(forecast, kib_s) if kib_s is not None else None


def at_speed(forecast: Forecast, kib_s: float) -> dict[str, Any]:
    """What a speed means for each action."""
    return {
        "kib_s": kib_s,
        "seconds": _times(forecast, kib_s),
        "p99_ns": {action: _estimate(forecast.p99(action, kib_s)) for action in ACTIONS},
    }


def _estimate(estimate: Estimate | None) -> dict[str, float] | None:
    if estimate is None:
        return None
    low, high = estimate.interval
    return {"value": estimate.value, "low": low, "high": high}
