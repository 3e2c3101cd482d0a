"""A sync that was guarded, as it is kept for a report: how pace, p99 and the expected end went on,
in no more points than a picture can show. Pure."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from autotune.guard.session import Summary
from autotune.guard.window import Window
from autotune.quantities import KIB

MOST_POINTS = 240
"""Where so many points are there, neighbours are put together: half as many are left."""
GAP_S = 60.0
"""After so long without a window, what comes is another sync, or the same taken up again."""


@dataclass(frozen=True)
class HistoryPoint:
    """Some windows together. Rates in bytes/s of each member; latencies in ns, None while nobody
    was there; what is left in seconds at the end of it, None as long as it could not be known."""

    seconds: float
    """Since the guard began, at the end of it."""
    sync_bytes_per_s: float
    held_bytes_per_s: float | None
    """The pace it was held to; None where it was not held."""
    p99_ns: float | None
    """The mean of its windows' p99s."""
    worst_p99_ns: float | None
    share: float
    """Of the sync that was done, 0 to 1."""
    left_s: float | None
    left_low_s: float | None
    left_high_s: float | None


NAMES = tuple(field.name for field in fields(HistoryPoint))


@dataclass(frozen=True)
class GuardedSync:
    """`action` as people call it; `ceiling_ns` is None without one, `finish_s` (since the epoch)
    without a deadline. `summary` is None if the guard was cut."""

    device: str
    uuid: str
    action: str
    began_s: float
    ceiling_ns: float | None
    policy: str | None
    finish_s: float | None
    points: tuple[HistoryPoint, ...]
    summary: Summary | None = None
    host: str = ""
    """The machine; "" if an earlier version kept it."""
    lab: bool = False

    def document(self) -> dict[str, Any]:
        """What JSON has: the points by column."""
        columns = {name: [getattr(point, name) for point in self.points] for name in NAMES}
        summary = asdict(self.summary) if self.summary else None
        return {**vars(self), "points": columns, "summary": summary}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "GuardedSync":
        """What `document` made. Raise TypeError, ValueError, KeyError, AttributeError or
        OverflowError if it makes no sense."""
        columns, summary = document["points"], document["summary"]
        rows = zip(*(columns[name] for name in NAMES), strict=True)
        values = [[None if v is None else float(v) for v in row] for row in rows]
        points = tuple(HistoryPoint(*row) for row in values)  # type: ignore[arg-type]
        told = Summary(**summary) if summary is not None else None
        found = cls(**{**document, "points": points, "summary": told})
        numbers = (found.began_s, found.ceiling_ns or 0.0, found.finish_s or 0.0)
        whole = all(None not in (p.seconds, p.sync_bytes_per_s, p.share) for p in points)
        whole = whole and isinstance(found.host, str) and isinstance(found.lab, bool)
        if not points or not whole or not all(math.isfinite(n) for n in numbers):
            raise ValueError("what is kept of a sync is not whole")
        return found


class Recording:
    """A sync under guard, as its windows come."""

    def __init__(self, device: str, uuid: str, ceiling_ns: float | None, policy: str | None):
        self._about = (device, uuid)
        self._goals = (ceiling_ns, policy)
        self._points: list[HistoryPoint] = []
        self._part: list[Window] = []
        self._windows_each = 1
        self._first: Window | None = None
        self._last: Window | None = None

    def goes_on(self, window: Window) -> bool:
        """Whether a window is of the same sync as those before."""
        last = self._last
        return last is None or (
            window.time_s - last.time_s < GAP_S and window.share >= last.share - 0.01
        )

    def add(self, window: Window) -> None:
        self._first, self._last = self._first or window, window
        self._part.append(window)
        if len(self._part) >= self._windows_each:
            self._points.append(_point(self._part, self._first.time_s))
            self._part = []
        if len(self._points) >= MOST_POINTS:
            pairs = zip(self._points[::2], self._points[1::2], strict=True)
            self._points = [_together(*pair) for pair in pairs]
            self._windows_each *= 2

    def so_far(self, summary: Summary | None = None) -> GuardedSync | None:
        """What there is to keep; None before the first window. `summary`: how it ended."""
        first, last = self._first, self._last
        if first is None or last is None:
            return None
        rest = [_point(self._part, first.time_s)] if self._part else []
        return GuardedSync(
            *self._about,
            last.action,
            first.time_s,
            self._goals[0],
            self._goals[1],
            last.finish_s,
            (*self._points, *rest),
            summary,
        )


def _point(windows: Sequence[Window], began_s: float) -> HistoryPoint:
    last = windows[-1]
    held = [w.sync_speed_max_kib * KIB for w in windows if w.source != "none"]
    p99s = [w.p99_ns for w in windows if w.p99_ns is not None]
    return HistoryPoint(
        last.time_s - began_s,
        _mean([w.sync_bytes_per_s for w in windows]),
        _mean(held) if held else None,
        _mean(p99s) if p99s else None,
        max(p99s, default=None),
        last.share,
        last.left_s,
        last.left_low_s,
        last.left_high_s,
    )


def _together(one: HistoryPoint, other: HistoryPoint) -> HistoryPoint:
    """Two neighbours that stand for as many windows."""

    def both(of: Callable[[HistoryPoint], float | None]) -> list[float]:
        return [value for value in (of(one), of(other)) if value is not None]

    held, p99s = both(lambda p: p.held_bytes_per_s), both(lambda p: p.p99_ns)
    return HistoryPoint(
        other.seconds,
        _mean([one.sync_bytes_per_s, other.sync_bytes_per_s]),
        _mean(held) if held else None,
        _mean(p99s) if p99s else None,
        max(both(lambda p: p.worst_p99_ns), default=None),
        *(other.share, other.left_s, other.left_low_s, other.left_high_s),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
