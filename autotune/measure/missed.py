"""What users would have felt whose requests fio sent too late, since they waited for another. Pure.

A user of fio with a rate sends nothing while its last request is under way, and then at once all
that it has missed (backend.c, usec_for_io: the times of a Poisson process are set beforehand). So
those that would have waited for the rest of a stall are told as fast ones that came after it
("coordinated omission"). Here they get the wait that they would have had.
"""

from collections import Counter
from collections.abc import Sequence

from autotune.stats.histogram import Histogram, difference, total

MOST_POINTS = 64
"""Of one wait, so that users at high rates do not make it thousands."""


class Missed:
    """The latencies of one job, document by document. `each_iops`: the rate of each user."""

    def __init__(self, each_iops: int) -> None:
        self._each_iops = each_iops
        self._told: Histogram = {}
        self._felt: Histogram = {}
        self._waiting: list[int] = []
        """Missed before the last document ended, and not sent by then."""

    def felt(self, told: Histogram) -> Histogram:
        """What users felt, by all that fio has told since its start: as many requests.

        Where no fast ones follow, as in a queue in which all are slow, nothing was missed.
        """
        new = difference(told, self._told)
        fast = sorted(Counter({ns: n for ns, n in new.items() if not self._missed(ns)}).elements())
        missed = [
            wait
            for ns, count in new.items()
            for wait in _rest(ns, min(self._missed(ns), MOST_POINTS))
            for _ in range(count)
        ]
        earlier = _spread(self._waiting, len(fast))
        now = _spread(missed, len(fast) - len(earlier))
        # fio may tell of those that waited before it tells of those that followed, but not longer.
        self._waiting = list((Counter(missed) - Counter(now)).elements())
        gone = Counter(_spread(fast, len(earlier) + len(now)))
        self._told = told
        self._felt = total([self._felt, Counter(new) - gone, Counter([*earlier, *now])])
        return self._felt

    def _missed(self, ns: int) -> int:
        """How many requests a user would have sent while one took so long."""
        return round(ns / 1e9 * self._each_iops)


def _rest(ns: int, parts: int) -> list[int]:
    """What is left of a wait for those who come in it, one in each part."""
    return [round(ns * (n + 0.5) / parts) for n in range(parts)]


def _spread(values: Sequence[int], most: int) -> list[int]:
    """So many of the values at most, evenly from the smallest to the largest."""
    count = min(most, len(values))
    ordered = sorted(values)
    return [ordered[(2 * n + 1) * len(ordered) // (2 * count)] for n in range(count)]
