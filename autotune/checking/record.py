"""What is known of the checks of an array: the one that goes on, and those of before. Pure.

Positions are in sectors of 512 bytes, as md counts a check: of each member, on RAID 10 of the
array.
"""

from datetime import datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from autotune.stats.histogram import at_rank

MOST_CHECKS = 100
MOST_PARTS = 40
UNKNOWN = "killed"
"""Why a part is over, if it could not say so itself."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Part(_Strict):
    """A part of a check without interruption; of neighbours that were joined, all of them."""

    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    began: datetime
    seconds: float = 0.0
    mismatches: int = 0
    """Sectors."""
    ended: str = UNKNOWN


class Felt(_Strict):
    """How a check disturbed: of so many p99s of half a minute, so many above the ceiling."""

    judged: int = 0
    over: int = 0
    p99_ns: dict[int, int] = Field(default_factory=dict)
    """How often each was seen, by its value to two digits."""

    def seen(self, p99_ns: float, is_over: bool) -> "Felt":
        """With another one."""
        ns = int(float(f"{p99_ns:.1e}"))
        counts = {**self.p99_ns, ns: self.p99_ns.get(ns, 0) + 1}
        return Felt(judged=self.judged + 1, over=self.over + is_over, p99_ns=counts)

    @property
    def middle_ns(self) -> int | None:
        """The median of the p99s."""
        return at_rank(sorted(self.p99_ns.items()), self.judged / 2) if self.p99_ns else None

    @property
    def worst_ns(self) -> int | None:
        return max(self.p99_ns, default=None)


class CheckRecord(_Strict):
    """One check. `array` and `members` say of what; `size` is how far it has to go. Its parts lie
    one behind the other, from 0 on: nothing is left out, nothing is there twice."""

    began: datetime
    array: str
    members: tuple[str, ...]
    size: Annotated[int, Field(gt=0)]
    parts: Annotated[tuple[Part, ...], Field(max_length=MOST_PARTS)] = ()
    pieces: int = 0
    """How many parts there were, joined ones counted one by one."""
    felt: Felt = Felt()
    ended: datetime | None = None
    """When all was read."""
    given_up: str = ""
    """Why a later one began anew."""
    unread: int = 0
    """Sectors that md compared with nothing, since members list them as bad."""
    told: int = 0
    """As many mismatches were told of."""
    ceiling_ns: float | None = None
    """What the p99 was held to of late; None if to nothing."""
    host: str = ""
    """The machine; "" if an earlier version kept it."""
    lab: bool = False

    @model_validator(mode="after")
    def _has_no_gap(self) -> "CheckRecord":
        at = 0
        for part in self.parts:
            if part.start != at or part.end < part.start:
                raise ValueError(f"a part starts at {part.start}, not at {at}")
            at = part.end
        if self.ended is not None and at != self.size:
            raise ValueError(f"it is called complete at {at} of {self.size} sectors")
        return self

    @property
    def position(self) -> int:
        return self.parts[-1].end if self.parts else 0

    @property
    def share(self) -> float:
        return min(self.position / self.size, 1.0)

    @property
    def mismatches(self) -> int:
        """Sectors that differ."""
        return sum(part.mismatches for part in self.parts)

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    @property
    def open(self) -> bool:
        """Whether it is to go on."""
        return self.ended is None and not self.given_up

    def changed(self, **values: object) -> "CheckRecord":
        """With other values, looked through again."""
        return CheckRecord.model_validate({**dict(self), **values})

    def with_part(self, part: Part) -> "CheckRecord":
        """With one more part, or the last one as it is by now. One that came to nothing is left
        out."""
        if part.end == part.start:
            return self
        before = [each for each in self.parts if each.began != part.began]
        pieces = self.pieces + (len(before) == len(self.parts))
        if len(before) >= MOST_PARTS:
            before = [_joined(before[0], before[1]), *before[2:]]
        return self.changed(parts=(*before, part), pieces=pieces)


def _joined(first: Part, second: Part) -> Part:
    return Part(
        start=first.start,
        end=second.end,
        began=first.began,
        seconds=first.seconds + second.seconds,
        mismatches=first.mismatches + second.mismatches,
        ended=second.ended,
    )


class CheckHistory(_Strict):
    """The checks of an array, the newest last."""

    device: str = ""
    checks: Annotated[tuple[CheckRecord, ...], Field(max_length=MOST_CHECKS)] = ()

    @property
    def current(self) -> CheckRecord | None:
        """The one that is to go on."""
        return self.checks[-1] if self.checks and self.checks[-1].open else None

    @property
    def complete(self) -> CheckRecord | None:
        """The newest of which all was read."""
        return next((c for c in reversed(self.checks) if c.ended is not None), None)

    @property
    def differing(self) -> CheckRecord | None:
        """The newest check that found mismatches, if none has read all since and found none."""
        for check in reversed(self.checks):
            if check.mismatches:
                return check
            if check.ended is not None:
                return None
        return None

    def is_due(self, every_s: float, now: datetime) -> bool:
        """Whether a check is to go on, or the newest of which all was read began so long ago, or at
        a time that is still to come: the clock was wrong then. `now` with its time zone."""
        if self.current is not None or self.complete is None:
            return True
        return not 0 <= (now - self.complete.began).total_seconds() < every_s

    def begun(self, record: CheckRecord, why: str) -> "CheckHistory":
        """With a new check; `why` one that was to go on is given up."""
        before = list(self.checks)
        if self.current is not None:
            before[-1] = self.current.changed(given_up=why)
        return CheckHistory(device=self.device, checks=(*before, record)[-MOST_CHECKS:])

    def now(self, device: str, record: CheckRecord) -> "CheckHistory":
        """With the newest check as it is by now, and the name of its array."""
        return CheckHistory(device=device, checks=(*self.checks[:-1], record))
