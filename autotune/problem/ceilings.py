"""Ceilings: latency limits that a setting must hold, as asked for and as resolved. Pure."""

import dataclasses
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from autotune.errors import RefusalError, UsageError
from autotune.problem.figure import Figure
from autotune.problem.objective import Figures
from autotune.quantities import parse_latency_ns, show_latency
from autotune.untrusted import plain

QUANTITIES = ("p99", "write_p99")
IDLE = "idle"
LEAST_SLACK, MOST_SLACK = 1.1, 1.5
"""Without a ceiling of the user's, p99 may be a tenth above the baseline's, or more if the
baseline's own noise asks for it: "no worse" taken to the letter would refuse the baseline itself
every other time."""
LEAST_NS = 20e3
"""Even an NVMe disk that is idle takes longer for 1 of 100 requests."""
DOUBTFUL_NS = 10e9
"""A slow array may take longer under load, but "20s" is more often a slip for "20ms"."""
USUAL = "Usual ceilings are 20ms to 1s for hard disks, and 1ms to 50ms for SSDs."


@dataclass(frozen=True)
class Ceiling:
    """One limit as asked for: of one phase or (None) of all, absolute in ns or as a multiple of
    the idle array's p99."""

    phase: str | None
    limit_ns: float | None
    times_idle: float | None

    def __str__(self) -> str:
        """As it is asked for."""
        # In a command a blank would make it two words, and rounding another ceiling.
        limit = _exactly(self.limit_ns) if self.limit_ns else f"{self.times_idle:g}x"
        return f"{self.phase}={limit}" if self.phase else limit


def _exactly(ns: float) -> str:
    if ns >= 1e9 and (ns / 1e8).is_integer():
        return f"{ns / 1e9:g}s"
    return f"{ns / 1e6:g}ms" if ns >= 1e6 else f"{ns / 1e3:g}µs"


def parse_ceiling(text: str) -> Ceiling:
    """`20ms`, `1.5x`, or either after `PHASE=`. Raise UsageError if it is none of these."""
    phase, named, limit = text.rpartition("=")
    if named and not phase.strip():
        raise UsageError(
            f'The ceiling "{plain(text)}" names no phase before its =; write it like resync=20ms.'
        )
    factor = re.fullmatch(r"(\d+(?:\.\d+)?)x", limit.strip())
    if factor:
        if float(factor[1]) == math.inf:
            raise UsageError(
                "That ceiling is too high to limit anything; leave it out, or write it like 1.5x."
            )
        if float(factor[1]) < 1:
            raise UsageError(
                f'A ceiling of "{plain(limit)}" is below the p99 of the idle array, so no setting '
                "can meet it; write 1x or more."
            )
        return Ceiling(phase or None, None, float(factor[1]))
    return Ceiling(phase or None, parse_limit_ns(limit), None)


def parse_limit_ns(text: str) -> float:
    """A limit of a p99 in ns. Raise UsageError if it is none, or below what any disk can do."""
    limit_ns = parse_latency_ns(text)
    if limit_ns < LEAST_NS:
        raise UsageError(
            f'No disk answers within "{plain(text)}", so no setting can meet that ceiling. {USUAL}'
        )
    return limit_ns


def doubt(ceiling: Ceiling) -> str:
    """What is odd about a ceiling that can be asked for all the same; "" if nothing is."""
    if ceiling.limit_ns is None or ceiling.limit_ns <= DOUBTFUL_NS:
        return ""
    return (
        f"A ceiling of {show_latency(ceiling.limit_ns)} hardly limits anything; is that meant? "
        f"{USUAL}"
    )


def check_phases(ceilings: Iterable[Ceiling], figures: Iterable[Figure]) -> None:
    """Raise UsageError if a ceiling names a phase whose latency is not measured."""
    known = sorted({f.phase for f in figures if f.quantity in QUANTITIES})
    named: set[str | None] = set()
    for ceiling in ceilings:
        if ceiling.phase in named:
            what = f"the phase {plain(ceiling.phase)}" if ceiling.phase else "all phases"
            raise UsageError(f"There are two ceilings for {what}; give one.")
        named.add(ceiling.phase)
        if not known:
            raise UsageError(
                "No phase of this workload has a probe, so there is no latency that a ceiling "
                "could be for; leave it out."
            )
        if ceiling.phase is not None and ceiling.phase not in known:
            raise UsageError(
                f'There is no phase "{plain(ceiling.phase)}" with a probe in this workload; '
                f"ceilings can be set for {', '.join(known)}."
            )


def resolve(
    figures: Sequence[Figure], ceilings: Sequence[Ceiling], baseline: Figures
) -> list[Figure]:
    """The figures with their limits: the user's most special one in ns, else the default, which
    is a ratio to the baseline.

    Raise RefusalError if even the idle array breaks a ceiling: then no setting can hold it; or if
    the phase that one names had too few requests for a p99: then nobody knows.
    """
    idle_reads = baseline.get(f"{IDLE}.p99")
    resolved = []
    for figure in figures:
        before = baseline.get(figure.name)
        quantity = figure.quantity
        if quantity not in QUANTITIES or before is None:
            resolved.append(figure)
            continue
        # A workload whose idle probe only reads compares writes with that.
        idle = baseline.get(f"{IDLE}.{quantity}", idle_reads)
        fitting = [c for c in ceilings if c.phase in (figure.phase, None)]
        if not fitting:
            slack = min(max(LEAST_SLACK, math.exp(2 * before.spread)), MOST_SLACK)
            resolved.append(dataclasses.replace(figure, ratio=slack))
            continue
        asked = max(fitting, key=lambda c: c.phase is not None)
        if asked.times_idle is not None and idle is None:
            raise RefusalError(
                "A ceiling relative to idle needs the workload's phase "
                f'"{IDLE}" with a probe; give it in ms instead.'
            )
        limit = asked.limit_ns or (asked.times_idle or 1) * (idle.value if idle else 0)
        if idle is not None and asked.limit_ns is not None and idle.value > limit:
            raise RefusalError(
                f"The ceiling of {show_latency(limit)} for {figure.name} cannot be held: the "
                f"idle array already takes {show_latency(idle.value)}; allow more."
            )
        resolved.append(dataclasses.replace(figure, ceiling=limit))
    limited = {figure.phase for figure in resolved if figure.ceiling is not None}
    unknown = {figure.phase for figure in resolved if figure.quantity in QUANTITIES} - limited
    for ceiling in ceilings:
        if ceiling.phase in unknown:
            raise RefusalError(
                f"The ceiling {ceiling} cannot be judged: too few requests were answered in the "
                f"phase {ceiling.phase} for a p99. Leave that ceiling out, or raise the phase's "
                "max_seconds or the rate of its probe (a workload file)."
            )
    return resolved
