"""What is left out at the start of a phase. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, field

LOAD_RAMP_S = 1.0
"""Left out at the start of a load, whose second second is like those after it (RAID5 of hard disks
in the lab)."""
CHECK_RAMP_S = 2.0
"""As much of a check, which is still gaining speed then."""
SETTLE_S = 25.0
"""As much at most of a check on an array whose stripe cache grows: a rebuild takes hours, and its
first seconds are not like the rest. (RAID6 of 6 hard disks in the lab, 256 stripes: after 5 s 33
MB/s and a p99 of 0.1 s, from 20 s on 41 MB/s and 0.44 s. With 1024 stripes it is that from the
first second on.)"""
GROWING, LOOK_BACK_S = 1.12, 4.0
"""A cache that became so many times as large in so many seconds still changes what is measured."""


@dataclass
class Settling:
    """The start of a phase. `check`: whether that is a check. `grows`: whether the array has a
    stripe cache, which begins small. `stripes` says how large that is; None if nothing tells."""

    check: bool
    grows: bool
    stripes: Callable[[], int | None]
    seen: list[tuple[float, int | None]] = field(default_factory=list)

    @property
    def least_s(self) -> float:
        """What nobody needs to hear of."""
        return CHECK_RAMP_S if self.check else LOAD_RAMP_S

    @property
    def most_s(self) -> float:
        """How long it takes at most."""
        return SETTLE_S if self.check and self.grows else self.least_s

    def is_over(self, passed_s: float) -> bool:
        """Whether what comes after so many seconds counts. To be asked each second."""
        if passed_s >= self.most_s or self.most_s <= self.least_s:
            return passed_s >= self.most_s
        stripes = self.stripes()
        self.seen.append((passed_s, stripes))
        earlier = [count for at_s, count in self.seen if at_s <= passed_s - LOOK_BACK_S]
        if not (stripes and earlier and earlier[-1]):
            return False
        return stripes < GROWING * earlier[-1]
