"""Phases to measurement: run fio and the check of a phase until its figures are steady."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from autotune.errors import (
    AutotuneError,
    InfeasibleError,
    MeasurementError,
    StoppedError,
    is_signalled,
)
from autotune.measure.check import Check
from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.live_sync import Recovery
from autotune.measure.series import LOAD, PROBE, Reading, Series
from autotune.measure.settling import CHECK_RAMP_S, Settling
from autotune.measure.workload import Phase
from autotune.measure.write_budget import Written, shares
from autotune.problem.ceilings import QUANTITIES as CEILING_QUANTITIES
from autotune.problem.course import Course
from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures
from autotune.safety.journal import Journal
from autotune.stats.histogram import Histogram, percentile, samples_needed, total
from autotune.stats.steady_state import is_steady, rate

SILENCE_S = 20.0
"""fio speaks each second; after so long without a word it is taken for stuck."""
TICK_S = 0.5


@dataclass(frozen=True)
class PhaseResult:
    """What one phase showed. `unsupported` are percentiles with too few samples. `hopeless` says
    why the phase was ended early, if it was; its figures are then what was learnt until then.
    `measured_s` is what the figures are of, `settling_s` what passed from fio's start to that."""

    phase: str
    figures: dict[str, Estimate]
    seconds: float
    steady: bool
    unsupported: tuple[str, ...] = ()
    bytes_written: int = 0
    hopeless: str = ""
    measured_s: float = 0.0
    settling_s: float = 0.0
    course: Course | None = None


@dataclass(frozen=True)
class Hopelessness:
    """A trial is not worth going on with: why, and figures that are known all the same."""

    reason: str
    figures: Figures


Histograms = Mapping[str, Sequence[Histogram]]
"""By latency ("p99" and "write_p99", in ns), a histogram for each interval."""
Hopeless = Callable[[Figures, Histograms], Hopelessness | None]
"""Told the figures so far and the histograms."""


Clear = Callable[[Figures], bool]
"""Told the figures so far: whether they are known well enough, steady or not."""


def never_clear(_figures: Figures) -> bool:
    """Measure until the figures are steady."""
    return False


def never_hopeless(_figures: Figures, _histograms: Histograms) -> Hopelessness | None:
    """Measure to the end whatever comes."""
    return None


@dataclass(frozen=True)
class Bench:
    """What phases are measured on: where loads that only read go, and where writes may go
    (None: nowhere, so phases that write are left out)."""

    name: str
    reads: Target
    writes: Target | None
    journal: Journal
    watch: Callable[[], None]
    """Called at least once a second during a phase; raises to end it at once."""
    begin: Callable[[], None]
    """Called as a phase begins; takes back what the array changed by itself."""
    progress: Callable[[Phase, float], None]
    """Hears the share of a phase's time that has passed, 0 to 1."""
    recovery: Recovery | None = None
    """The real sync to measure in place of a check."""
    written: Written = field(default_factory=Written)
    """Counts what phases write, and says how much they still may."""
    stripes: Callable[[], int | None] = lambda: None
    """How many stripes the array's cache has now; None if that is not told."""
    grows: bool = False
    """Whether the array has a stripe cache, which grows under load."""


def fio_jobs(phase: Phase, reads: Target, writes: Target | None) -> list[Job]:
    """The jobs of a phase: what writes, and the reads of a probe that also writes, go to `writes`,
    all else to `reads`.

    Raise MeasurementError if a job writes and there is nowhere to write to.
    """
    jobs: list[Job] = []
    for does, parts in (
        (phase.load, {LOAD: phase.load}),
        (phase.probe, dict(zip(PROBE, phase.probe.parts, strict=True)) if phase.probe else {}),
    ):
        target = writes if does is not None and does.writes else reads
        if target is None:
            raise MeasurementError(
                f'Phase "{phase.name}" writes, but there is nowhere to write to.'
            )
        jobs += [Job(name, part, target) for name, part in parts.items() if part is not None]
    return jobs


def measure(
    phase: Phase,
    bench: Bench,
    seed: int,
    hopeless: Hopeless = never_hopeless,
    clear: Clear = never_clear,
) -> PhaseResult:
    """Run one phase until its figures are steady or clear enough, between its minimum and maximum
    time, or until it is certain that the trial is not worth it.

    Raise MeasurementError if fio breaks or falls silent, StoppedError before the write budget is
    passed, and whatever the watch raises.
    """
    jobs, most = fio_jobs(phase, bench.reads, bench.writes), {}
    if bench.written.left is not None:
        most = shares(jobs, bench.written.left, phase.max_seconds + CHECK_RAMP_S)
    fio = Fio(jobs, phase.max_seconds, seed, most)
    if fio.exhausted:
        raise bench.written.used_up()
    series, in_hurry = Series(), False
    try:
        result = _measure(phase, bench, fio, series, hopeless, clear)
    except BaseException as error:
        in_hurry = is_signalled(error)
        if fio.hangs and isinstance(error, MeasurementError | InfeasibleError):
            raise StoppedError(
                f"Stopped: fio hangs in the kernel in the phase {phase.name}; look at the kernel "
                "log, and at what the filesystem lies on."
            ) from None
        if isinstance(error, InfeasibleError):
            # That is no fault of the setting: a member may have failed, which the watch says.
            bench.watch()
            raise StoppedError(
                f"Stopped, since a check could not be started or ended. {error}"
            ) from None
        raise
    finally:
        bench.written.add(fio.written, store=not in_hurry)
        if fio.hangs and bench.writes is not None and any(job.does.writes for job in jobs):
            with contextlib.suppress(AutotuneError):
                bench.journal.hanging(bench.writes.path.parent)
    if result is None:
        raise bench.written.used_up()
    return dataclasses.replace(result, bytes_written=fio.written, course=series.course)


def _measure(
    phase: Phase, bench: Bench, fio: Fio, series: Series, hopeless: Hopeless, clear: Clear
) -> PhaseResult | None:
    """What `measure` does with its fio; None if that has written all that it may."""
    settled_s, early = 0.0, Series()
    settling = Settling(phase.check, bench.grows and bench.recovery is None, bench.stripes)
    called = time.monotonic()
    bench.begin()
    with contextlib.ExitStack() as stack:
        check: Check | Recovery | None = None
        if phase.check:
            check = bench.recovery or Check(bench.name, bench.journal, bench.watch)
            stack.enter_context(check)
        # A real sync may have taken its time to settle.
        start = time.monotonic()
        stack.enter_context(fio)
        before: Reading | None = None
        while True:
            bench.watch()
            counters = fio.poll(TICK_S)
            now = time.monotonic()
            whole_s = phase.max_seconds + (settled_s or settling.most_s)
            bench.progress(phase, min(1.0, (now - start) / whole_s))
            if counters is None:
                if fio.silent_s > SILENCE_S:
                    raise MeasurementError(
                        f"fio has said nothing for {SILENCE_S:.0f} s; the array may be stuck."
                    )
                continue
            if fio.exhausted:
                return None
            state = Reading(now, dict(counters), check.done_bytes() if check else 0)
            shown = series if settled_s else early
            if before is not None:
                shown.add(before, state, bench.stripes())
            if not settled_s and settling.is_over(now - start):
                settled_s = now - start
            if before is not None or now - start >= settling.least_s:
                before = state
            result = dataclasses.replace(
                _result(phase, series, now - called),
                measured_s=sum(series.seconds),
                settling_s=settled_s or now - start,
            )
            # What users feel while it settles they feel, too.
            histograms = {q: shown.histograms(q) for q in CEILING_QUANTITIES}
            verdict = hopeless(result.figures, histograms)
            if verdict:
                known = {**result.figures, **verdict.figures}
                return dataclasses.replace(result, figures=known, hopeless=verdict.reason)
            if result.measured_s >= phase.max_seconds:
                return result
            if result.measured_s < phase.min_seconds or _waits(phase, series):
                continue
            if result.steady or clear(result.figures):
                return result


def _waits(phase: Phase, series: Series) -> bool:
    """Whether the probe has too few samples yet for the percentiles that ceilings are about."""
    return any(
        sum(total(series.histograms(quantity)).values()) < samples_needed(percent)
        for quantity, percent in phase.quantities.items()
        if quantity in CEILING_QUANTITIES
    )


def _result(phase: Phase, series: Series, seconds: float) -> PhaseResult:
    figures: dict[str, Estimate] = {}
    unsupported: list[str] = []
    steady = True
    if phase.load or phase.check:
        throughput = rate(series.amounts, series.seconds)
        steady = is_steady(throughput)
        if throughput is not None:
            figures[f"{phase.name}.throughput"] = throughput
    for quantity, percent in phase.quantities.items():
        estimate = percentile(series.histograms(quantity), percent)
        if estimate is None:
            unsupported.append(f"{phase.name}.{quantity}")
        else:
            figures[f"{phase.name}.{quantity}"] = estimate
    return PhaseResult(phase.name, figures, seconds, steady, tuple(unsupported))
