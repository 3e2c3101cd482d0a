"""What a phase showed second by second. Pure data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Course:
    """A phase from the end of its ramp on. A list has one entry for each interval.

    `seconds`: how long it was; `bytes`: what the load moved, or the check read of each member (on
    RAID 10 of the array); `slowest_ns`: the probe's slowest request, 0 if none ended; `stripes`:
    how many the stripe cache had at its end, empty where that is not told. `reads` and `writes`:
    how many of the probe's requests took so long, by ns, of all intervals together.
    """

    seconds: tuple[float, ...]
    bytes: tuple[float, ...]
    slowest_ns: tuple[int, ...] = ()
    stripes: tuple[int, ...] = ()
    reads: Mapping[int, int] = field(default_factory=dict)
    writes: Mapping[int, int] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """As the store takes it."""
        return asdict(self)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Course":
        """What `document` made. Raise TypeError or ValueError if it makes no sense."""
        try:
            # JSON has no numbers as keys.
            reads, writes = (
                {int(ns): int(n) for ns, n in document[name].items()}
                for name in ("reads", "writes")
            )
            return cls(
                tuple(document["seconds"]),
                tuple(document["bytes"]),
                tuple(document["slowest_ns"]),
                tuple(document["stripes"]),
                reads,
                writes,
            )
        except (KeyError, AttributeError):
            raise ValueError("what a phase showed second by second is not whole") from None
