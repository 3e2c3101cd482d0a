"""A forecast of syncs: a table of speeds, hours and latencies, and what follows in sentences."""

import math
from collections.abc import Iterator, Sequence
from datetime import datetime

from rich.console import Console

from autotune.measure.foreground import ACCOUNTING
from autotune.problem.figure import Estimate
from autotune.quantities import KIB, show_ends, show_latency, show_rate, show_seconds
from autotune.report.text_table import TextTable
from autotune.sync_forecast.model import CHECK, REBUILD, Forecast, SpeedPoint

HEADS = (*("each member", "check takes", "p99 in a check", "rebuild takes", "p99 in a rebuild"),)
_UNITS = (("days", 86_400.0), ("h", 3600.0), ("min", 60.0))


def show_rate_kib(kib_s: float) -> str:
    return show_rate(kib_s * KIB)


def show_latencies(estimate: Estimate) -> str:
    """`38 to 55 ms`: the 95 % interval."""
    return show_latency_span(*estimate.interval)


def show_latency_span(low_ns: float, high_ns: float) -> str:
    """The same of two latencies."""
    low, high = show_latency(low_ns), show_latency(high_ns)
    if low == high:
        return high
    unit = high.rpartition(" ")[2]
    return f"{low.removesuffix(' ' + unit)} to {high}"


def show_times(estimate: Estimate) -> str:
    """`31.2 to 42.0 h`: the 95 % interval."""
    return show_time_span(*estimate.interval)


def show_time_span(low: float, high: float) -> str:
    """The same of two times in seconds, in the unit of the longer one."""
    unit, seconds = next((each for each in _UNITS if high >= 2 * each[1]), ("s", 1.0))
    return f"{show_ends(_two_digits(low / seconds), _two_digits(high / seconds))} {unit}"


def _two_digits(number: float) -> str:
    return f"{number:.1f}" if number < 9.95 else f"{number:.0f}"


def print_forecast(
    console: Console, forecast: Forecast, within_s: float | None, ceiling_ns: float | None
) -> None:
    """All of it; `within_s` and `ceiling_ns` are what was asked for besides."""
    console.print(
        f"{forecast.device} ({forecast.level}, {forecast.media}), from a check of "
        f"{show_seconds(forecast.seconds)}:",
        markup=False,
    )
    console.print(_table(forecast))
    console.print()
    for line in lines(forecast, within_s, ceiling_ns):
        console.print(line, markup=False)


def _table(forecast: Forecast) -> TextTable:
    table = TextTable(*HEADS, right=[0], whole=range(5))
    for point, kib_s in rows(forecast):
        speed = min(kib_s, forecast.full_kib_s)
        cells = [show_rate_kib(speed)]
        for action in (CHECK, REBUILD):
            felt = expected_p99(forecast, point, action, speed)
            cells += [
                show_times(forecast.time(action, kib_s)),
                show_latencies(felt) if felt else "–",
            ]
        table.add_row(*cells)
    return table


def expected_p99(
    forecast: Forecast, point: SpeedPoint, action: str, kib_s: float
) -> Estimate | None:
    """What an action at the speed of a row would show; None if it had too few requests."""
    return forecast.p99(action, kib_s) if point.p99 is not None else None


def rows(forecast: Forecast) -> Iterator[tuple[SpeedPoint, float]]:
    """The points with a sync, and the limit that each stands for."""
    points = [point for point in forecast.points if point.kib_s]
    for point in points:
        full = forecast.stopped_ns is None and point is points[-1]
        yield point, math.inf if full else point.kib_s


def lines(forecast: Forecast, within_s: float | None, ceiling_ns: float | None) -> Iterator[str]:
    """What follows from it, each as a sentence or two."""
    yield "Ranges are 95 % intervals. The check was measured; the rebuild is estimated from it."
    yield "A resync in full takes about as long as a check, and is felt as much."
    yield from _now(forecast)
    if any(point.p99 is None for point in forecast.points):
        yield "Some speeds had too few requests for a p99; a longer --time gives more."
    if forecast.stopped_ns is not None:
        yield (
            f"Nothing faster was tried for longer than some seconds: the p99 was above "
            f"{show_latency(forecast.stopped_ns)} beyond doubt."
        )
    knee = forecast.knee
    if knee is not None and knee is forecast.points[-1] and forecast.stopped_ns is None:
        yield "The best ratio of speed to p99 was at full speed."
    elif knee is not None and forecast.stopped_ns is None:
        yield (
            f"The best ratio of speed to p99 was at {show_rate_kib(knee.kib_s)} of each member; "
            "what is faster costs more latency for each MB/s."
        )
    if within_s is not None:
        yield _within(forecast, within_s)
    if ceiling_ns is not None:
        yield _under(forecast, ceiling_ns)
    yield from unknown(forecast)


def _now(forecast: Forecast) -> Iterator[str]:
    who = "your p99" if forecast.source == ACCOUNTING else "the p99 of autotune's own small reads"
    who += " beside your users" if forecast.busy and forecast.source != ACCOUNTING else ""
    idle = forecast.points[0].p99 if forecast.points else None
    if idle is not None:
        yield f"Without a sync {who} is {show_latencies(idle)}."
    limit, full = forecast.limit(REBUILD), forecast.full_kib_s
    speed = min(limit, full)
    text = f"With the present sync_speed_max ({limit:.0f} KiB/s) a sync goes "
    text += f"at {show_rate_kib(limit)} of each member" if limit < full else "at full speed"
    text += f": a rebuild takes {_about(forecast.time(REBUILD, limit))}"
    felt = forecast.p99(REBUILD, speed)
    if felt is None and forecast.stopped_ns is not None:
        yield f"{text}, with a p99 above {show_latency(forecast.stopped_ns)}."
    else:
        yield text + (f", with a p99 of {show_latencies(felt)}." if felt else ".")


def _about(estimate: Estimate) -> str:
    return f"{show_seconds(estimate.value)} ({show_times(estimate)})"


def _within(forecast: Forecast, within_s: float) -> str:
    speed, whole = forecast.speed_for(within_s), show_seconds(within_s)
    if speed is None:
        return (
            f"A rebuild cannot be done within {whole}: at full speed it takes "
            f"{_about(forecast.time(REBUILD))}."
        )
    text = f"To be done within {whole} a rebuild needs {show_rate_kib(speed)} of each member"
    if speed > forecast.limit(REBUILD):
        text += f", more than the present sync_speed_max ({forecast.limit_kib_s:.0f} KiB/s) allows"
    felt, idle = forecast.p99(REBUILD, speed), forecast.points[0].p99
    if felt is None:
        return text + "."
    now = f" (without a sync {show_latency(idle.value)})" if idle else ""
    return f"{text}; the p99 is then {show_latencies(felt)}{now}."


def _under(forecast: Forecast, ceiling_ns: float) -> str:
    speed = forecast.speed_under(ceiling_ns, REBUILD)
    if speed is None:
        return f"No speed is known to keep the p99 under {show_latency(ceiling_ns)}."
    return (
        f"Under {show_latency(ceiling_ns)} a rebuild can go at about {show_rate_kib(speed)} of "
        f"each member, if the same users stay: {_about(forecast.time(REBUILD, speed))}."
    )


def unknown(forecast: Forecast) -> Iterator[str]:
    """What the check cannot know."""
    if not forecast.busy:
        yield "Nobody used the array: with users a sync is slower, and requests too."
    if not forecast.places_measured and forecast.media == "hdd":
        yield "How much slower the disks are at their end was not measured; half is assumed."
    text = "Not known: how fast a new member writes"
    if forecast.media != "hdd":
        text += " for long (a small SSD may be far slower after some minutes)"
    yield (
        text + ", what a degraded array costs its users beside the sync, and what a bitmap lets a "
        "resync skip."
    )


def print_list(console: Console, forecasts: Sequence[Forecast]) -> None:
    """One line a forecast."""
    if not forecasts:
        console.print("No forecasts yet; `autotune forecast /dev/md0` makes one.")
        return
    table = TextTable("made", "array", "full speed", "rebuild", "p99 then", whole=range(5))
    for each in forecasts:
        felt = each.p99(REBUILD, each.full_kib_s)
        table.add_row(
            datetime.fromtimestamp(each.made_s).strftime("%Y-%m-%d %H:%M"),
            each.device,
            show_rate_kib(each.full_kib_s),
            show_seconds(each.time(REBUILD).value),
            show_latencies(felt) if felt else "–",
        )
    console.print(table)
