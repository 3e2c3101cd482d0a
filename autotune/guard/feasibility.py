"""Whether a ceiling can be held at all by slowing a sync. Pure."""

import math
from collections import deque

VAIN_S = 180.0
"""For so long the sync is held to its least pace before the ceiling counts as out of reach,"""
VAIN_SHARE = 0.9
"""with so many of the windows in that time above the ceiling."""
LONG_S = 1800.0
"""Users who break the ceiling by themselves now and then keep the pace down for good, and yet there
are good windows between. So the mean pace of so long is looked at as well,"""
LONG_SHARE = 0.1
"""with so many of the windows above the ceiling."""
AT_LEAST = 2.0
"""Below this multiple of it, the pace is as good as the least: it never quite stands still."""


class Feasibility:
    """Judges a ceiling by what windows of `window_s` show. `out_for_s`: for how long the least pace
    did not hold it by now, if that is long enough for it to be out of reach; else 0."""

    def __init__(self, ceiling_ns: float, least_kib: float, window_s: float) -> None:
        self._ceiling_ns, self._slow_kib = ceiling_ns, AT_LEAST * least_kib
        self._vain: deque[bool] = deque(maxlen=round(VAIN_S / window_s))
        self._paces: deque[float] = deque(maxlen=round(LONG_S / window_s))
        self._broken: deque[bool] = deque(maxlen=round(LONG_S / window_s))
        self.out_for_s = 0.0

    def look(self, pace_kib: float | None, p99_ns: float | None) -> None:
        """Another window: the pace that the sync was held to, None if it was not, and the p99, None
        if it is not known."""
        if math.isinf(self._ceiling_ns):
            return
        pace = math.inf if pace_kib is None else pace_kib
        self._vain.append(pace <= self._slow_kib and (p99_ns is None or p99_ns > self._ceiling_ns))
        self._paces.append(pace)
        self._broken.append(p99_ns is not None and p99_ns > self._ceiling_ns)
        self.out_for_s = 0.0
        if _share(self._vain) >= VAIN_SHARE:
            self.out_for_s = VAIN_S
        elif _share(self._broken) > LONG_SHARE:
            slow = sum(self._paces) <= self._slow_kib * len(self._paces)
            self.out_for_s = LONG_S if slow else 0.0


def _share(seen: deque[bool]) -> float:
    """Of all the time that is looked at; 0 until that has passed."""
    return sum(seen) / len(seen) if len(seen) == seen.maxlen else 0.0
