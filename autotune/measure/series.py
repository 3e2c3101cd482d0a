"""What a phase showed, interval by interval. Pure."""

from dataclasses import dataclass, field

from autotune.measure.fio_output import Counters
from autotune.problem.course import Course
from autotune.stats.histogram import Histogram, total

LOAD, PROBE = "load", ("probe-reads", "probe-writes")
"""The jobs of fio in a phase."""


@dataclass(frozen=True)
class Reading:
    """What was read at a moment: fio's counters by job, and the bytes of each member that a check
    has read."""

    at_s: float
    counters: dict[str, Counters]
    checked_bytes: int


@dataclass
class Series:
    """What each interval showed: of a load or a check its bytes, of a probe its latencies."""

    seconds: list[float] = field(default_factory=list)
    amounts: list[float] = field(default_factory=list)
    reads: list[Histogram] = field(default_factory=list)
    writes: list[Histogram] = field(default_factory=list)
    stripes: list[int | None] = field(default_factory=list)

    def add(self, before: Reading, after: Reading, stripes: int | None) -> None:
        """An interval between two readings, with the stripes at its end."""
        deltas = {
            name: counters.since(before.counters[name])
            for name, counters in after.counters.items()
            if name in before.counters
        }
        if LOAD in deltas:
            self.seconds.append(deltas[LOAD].seconds)
            self.amounts.append(deltas[LOAD].bytes)
        else:
            self.seconds.append(after.at_s - before.at_s)
            self.amounts.append(after.checked_bytes - before.checked_bytes)
        if deltas.keys() & set(PROBE):
            reads, writes = (deltas.get(name) for name in PROBE)
            self.reads.append(reads.reads if reads else {})
            self.writes.append(writes.writes if writes else {})
        self.stripes.append(stripes)

    @property
    def course(self) -> Course:
        """The same for the store."""
        told = [n for n in self.stripes if n is not None]
        both = zip(self.reads, self.writes, strict=True)
        return Course(
            tuple(round(s, 3) for s in self.seconds),
            tuple(self.amounts),
            tuple(max((*r, *w), default=0) for r, w in both),
            tuple(told) if len(told) == len(self.stripes) else (),
            total(self.reads),
            total(self.writes),
        )

    def histograms(self, quantity: str) -> list[Histogram]:
        """The latencies of the probe that a quantity ("p99", "write_p99") is about."""
        return self.writes if quantity.startswith("write_") else self.reads
