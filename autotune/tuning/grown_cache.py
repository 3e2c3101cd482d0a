"""A check counts once the stripe cache has grown (measure/settling.py), which takes its time. What
it grew to once, later checks of the run begin with."""

import contextlib
from bisect import bisect_left
from collections.abc import Callable, Iterator

from autotune.errors import InfeasibleError
from autotune.knobs.stripe_cache import StripeCacheSize
from autotune.measure.phase import PhaseResult
from autotune.measure.settling import GROWING
from autotune.measure.workload import Phase
from autotune.problem.setting import Setting

NAME = StripeCacheSize.name


class GrownCache:
    """How many stripes the first check of a run in which the cache grew had at its end. That is
    the warm-up's, where there is one.

    With fewer at the start, any other check would come to about as many in time: the kernel adds
    one whenever none is free (drivers/md/raid5.c). More than a check needs just lie there, so a
    slower one is not changed by them.
    """

    def __init__(
        self, apply: Callable[[Setting], object], allowed: Callable[[Setting], bool]
    ) -> None:
        """`apply` brings the array to a setting. It raises InfeasibleError if it cannot. `allowed`
        says whether a setting is within the RAM budget."""
        self._apply, self._allowed = apply, allowed
        self._stripes = 0

    def learn(self, phase: Phase, setting: Setting, result: PhaseResult) -> None:
        """Take note of what a phase showed under a setting."""
        stripes = result.course.stripes if result.course else ()
        if not (phase.check and stripes) or self._stripes:
            return
        # What somebody has set says nothing of how far a smaller one would grow.
        if stripes[-1] > GROWING * int(setting.get(NAME, stripes[-1])):
            self._stripes = stripes[-1]

    @contextlib.contextmanager
    def before(self, phase: Phase, setting: Setting) -> Iterator[bool]:
        """Meanwhile a check, of this setting, begins with as many stripes, or as many as are
        allowed. Whether it has all of them, or more by itself: then there is no growth to wait
        for."""
        size = int(setting.get(NAME, 0))
        most = self._most_allowed(setting, size) if phase.check and size else size
        if most == size:
            yield phase.check and size >= self._stripes > 0
            return
        is_grown = most == self._stripes
        try:
            self._apply({**setting, NAME: most})
        except InfeasibleError:
            # As small as it is, it takes longer.
            self._apply(setting)
            is_grown = False
        yield is_grown
        # After an error the run ends, or its next trial sets everything.
        self._apply(setting)

    def _most_allowed(self, setting: Setting, size: int) -> int:
        """As many stripes as are known, or as the RAM budget has room for."""
        larger = range(size + 1, self._stripes + 1)
        return size + bisect_left(
            larger, True, key=lambda count: not self._allowed({**setting, NAME: count})
        )
