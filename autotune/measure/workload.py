"""Workloads: the phases that stand for how an array is used, with weights. Data, from TOML."""

import math
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from autotune.errors import UsageError, closest
from autotune.measure.fio_job import SUFFIX, job_document
from autotune.problem.ceilings import Ceiling, check_phases, parse_ceiling
from autotune.problem.figure import Figure
from autotune.untrusted import MOST_TYPED_BYTES, first_fault, plain, read_text, read_toml

START_S = 3.0
"""Until a phase has any figure: fio starts, and the array is left to settle."""
GROWTH_S = 12.0
"""As much again for a check, until the stripe cache of RAID 4, 5 or 6 has grown: 4 to 25 s. A run
waits for that once."""
PERCENTILES = {"p50": 50.0, "p99": 99.0, "p999": 99.9}
"""The percentiles of a probe's latency: of its reads as "p99", of its writes as "write_p99"."""

MOST_USERS = 64
"""Of a probe."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Load(_Strict):
    """What runs as fast as it can: `streams` processes, each with `depth` requests in flight."""

    rw: Literal["read", "write", "randread", "randwrite", "randrw"]
    block_kib: Annotated[int, Field(ge=4, le=16384)]
    depth: Annotated[int, Field(ge=1, le=256)] = 1
    streams: Annotated[int, Field(ge=1, le=16)] = 1
    buffered: bool = False
    """Through the page cache, where read-ahead works; else with O_DIRECT."""
    read_percent: Annotated[int, Field(ge=0, le=100)] = 70
    """Of `randrw` alone."""
    sync_every: Annotated[int, Field(ge=0, le=1024)] = 0
    """fsync after so many writes; 0: never."""

    @property
    def writes(self) -> bool:
        return self.rw in ("write", "randwrite") or (
            self.rw == "randrw" and self.read_percent < 100
        )

    @property
    def reads(self) -> bool:
        return self.rw in ("read", "randread") or (self.rw == "randrw" and self.read_percent > 0)


class Probe(_Strict):
    """Foreground requests at a fixed rate, so that latencies compare: random, direct, of several
    users of whom none waits for another's request.

    fio with a rate waits for what is under way before it sleeps, so a single user sends one of all
    that would wait for a stall. And fio prints nothing before each user has come to its next
    request, from 3.42 on one after the other, so there should be few, and none slow (MD_FACTS.md,
    4).
    """

    rate_iops: Annotated[int, Field(ge=1, le=100_000)]
    block_kib: Annotated[int, Field(ge=4, le=1024)] = 4
    read_percent: Annotated[int, Field(ge=0, le=100)] = 100

    @property
    def reads(self) -> bool:
        return self.read_percent > 0

    @property
    def writes(self) -> bool:
        return self.read_percent < 100

    @property
    def each_iops(self) -> int:
        """The rate of each user: near the root of the whole, as near as fits that best."""
        root = math.sqrt(self.rate_iops)
        least = max(math.ceil(root / 1.5), math.ceil(self.rate_iops / MOST_USERS))
        rates = range(least, max(math.floor(root * 1.5), least) + 1)
        return min(
            rates, key=lambda each: abs(round(self.rate_iops / each) * each - self.rate_iops)
        )

    @property
    def users(self) -> int:
        """How many there are."""
        return round(self.rate_iops / self.each_iops)

    @property
    def parts(self) -> "tuple[Probe | None, Probe | None]":
        """Its reads and its writes alone."""
        reads = round(self.rate_iops * self.read_percent / 100)
        if self.reads and self.writes:
            reads = min(max(reads, 1), self.rate_iops - 1)
        both = ((reads, 100), (self.rate_iops - reads, 0))
        one, other = (
            Probe(rate_iops=iops, block_kib=self.block_kib, read_percent=percent) if iops else None
            for iops, percent in both
        )
        return one, other


class Phase(_Strict):
    """One fio measurement with one purpose: a load or a check, a probe beside it, or both."""

    name: Name
    weight: Annotated[float, Field(ge=0, le=100)] = 0.0
    load: Load | None = None
    check: bool = False
    """Run a redundancy check and measure its rate: the stand-in for a resync."""
    probe: Probe | None = None
    min_seconds: Annotated[float, Field(ge=2, le=600)] = 4.0
    max_seconds: Annotated[float, Field(ge=2, le=3600)] = 12.0

    @property
    def expected_seconds(self) -> float:
        """How long it takes as long as nothing better is known."""
        return (self.min_seconds + self.max_seconds) / 2 + START_S

    @property
    def growth_s(self) -> float:
        """As much again where the stripe cache has to grow first."""
        return GROWTH_S if self.check else 0.0

    @model_validator(mode="after")
    def _has_a_purpose(self) -> "Phase":
        if self.load and self.check:
            raise ValueError(f'phase "{self.name}" has a load and a check; make it two phases')
        if not (self.load or self.check or self.probe):
            raise ValueError(f'phase "{self.name}" needs a load, a check or a probe')
        if self.check and not self.probe:
            raise ValueError(
                f'phase "{self.name}" has a check but no probe; add the foreground that it runs '
                "beside (probe = { rate_iops = 60 })"
            )
        if self.weight and not (self.load or self.check):
            raise ValueError(f'phase "{self.name}" has a weight but no load or check to weigh')
        if self.max_seconds < self.min_seconds:
            raise ValueError(f'phase "{self.name}" has max_seconds below min_seconds')
        return self

    @property
    def buffered_read(self) -> bool:
        return bool(self.load and self.load.buffered and self.load.reads)

    @property
    def reads(self) -> bool:
        return bool(self.load and self.load.reads)

    @property
    def writes(self) -> bool:
        return bool((self.load and self.load.writes) or (self.probe and self.probe.writes))

    @property
    def checks(self) -> bool:
        return self.check

    @property
    def quantities(self) -> dict[str, float]:
        """The latencies that the probe shows, in percent."""
        if self.probe is None:
            return {}
        of_reads = PERCENTILES if self.probe.reads else {}
        of_writes = {f"write_{q}": p for q, p in PERCENTILES.items()} if self.probe.writes else {}
        return {**of_reads, **of_writes}

    def figures(self) -> list[Figure]:
        """What this phase measures, without ceilings."""
        figures = []
        if self.load or self.check:
            figures.append(Figure(f"{self.name}.throughput", self.name, "throughput", self.weight))
        if self.probe:
            figures += [Figure(f"{self.name}.{q}", self.name, "latency") for q in self.quantities]
        return figures


class Workload(_Strict):
    """Phases and their weights. `phases` have unique names, and at least one has a weight."""

    name: Name
    description: Annotated[str, Field(max_length=400)] = ""
    phases: Annotated[tuple[Phase, ...], Field(min_length=1, max_length=16)]
    ceilings: Annotated[tuple[str, ...], Field(max_length=16)] = ()
    """As `--p99-ceiling` takes them; those of the command line come instead of them."""
    long_seconds: Annotated[float, Field(ge=0, le=3600)] = 60.0
    """How long a load of streams that write lasts in the proof, where the kernel's own growth of
    the stripe cache may change the answer; 0: it is left out."""
    counts: Literal["bursts", "long"] = "bursts"
    """Whether the gain of the first seconds or that of the long load has to be shown."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> "Workload":
        names = [phase.name for phase in self.phases]
        if len(set(names)) < len(names):
            raise ValueError("two phases have the same name")
        if not any(phase.weight for phase in self.phases):
            raise ValueError("no phase has a weight (weight = 1), so there is nothing to improve")
        if self.counts == "long" and not self.long_seconds:
            raise ValueError('counts = "long" needs a long_seconds above 0')
        try:
            check_phases(self.limits, self.figures)
        except UsageError as error:
            raise ValueError(str(error).rstrip(".")) from None
        return self

    @property
    def figures(self) -> list[Figure]:
        return [figure for phase in self.phases for figure in phase.figures()]

    @property
    def limits(self) -> tuple[Ceiling, ...]:
        """The ceilings. Raise UsageError if one cannot be understood."""
        return tuple(parse_ceiling(text) for text in self.ceilings)

    @property
    def only_checks(self) -> bool:
        """Whether everything that counts is the rate of a sync."""
        return all(phase.check for phase in self.phases if phase.weight)


def shipped() -> list[str]:
    """The names of the workloads that come with autotune."""
    folder = resources.files("autotune.profiles.workloads")
    return sorted(e.name[:-5] for e in folder.iterdir() if e.name.endswith(".toml"))


def load_workload(name_or_path: str) -> Workload:
    """A shipped workload by its name, or one from a TOML file, or from a fio job file (*.fio).

    Raise UsageError if there is none, or if the file is not a valid workload.
    """
    # A folder or file of that name is where the command happens to be called, and may be anybody's.
    if re.fullmatch(r"[a-z][a-z0-9-]*", name_or_path):
        if name_or_path not in shipped():
            raise UsageError(
                f'There is no workload "{name_or_path}"{closest(name_or_path, shipped())}; shipped '
                f"are {', '.join(shipped())}, or give the path of a TOML file or a fio job file "
                "(*.fio)."
            )
        entry = resources.files("autotune.profiles.workloads") / f"{name_or_path}.toml"
        return parse_workload(entry.read_text(), name_or_path)
    path = Path(name_or_path)
    if path.suffix not in (".toml", SUFFIX):
        raise UsageError(
            f'The name of the workload file "{path}" has to end in .toml, or in {SUFFIX} if it is '
            "a fio job file."
        )
    parse = parse_fio_job if path.suffix == SUFFIX else parse_workload
    return parse(read_text(path, MOST_TYPED_BYTES, "The workload file"), str(path))


def parse_workload(text: str, source: str) -> Workload:
    """A workload from TOML text. Raise UsageError naming `source` and the first fault."""
    try:
        document = read_toml(text)
    except ValueError as error:
        fault = plain(str(error))
        raise UsageError(f'The workload "{source}" is not valid TOML: {fault}.') from None
    return _validated(document, source)


def parse_fio_job(text: str, source: str) -> Workload:
    """A workload from a fio job file's text. Raise UsageError naming `source` and the first
    option that has no place in one."""
    return _validated(job_document(text, source), source)


def _validated(document: Mapping[str, Any], source: str) -> Workload:
    try:
        return Workload.model_validate(document)
    except ValidationError as error:
        fault = first_fault(error)
        raise UsageError(f'The workload "{source}" is not valid: {fault}.') from None
