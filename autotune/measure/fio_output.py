"""What fio prints, as `fio` makes it do so: a stream of JSON documents, each with counters."""

import contextlib
import json
import os
import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autotune.errors import MeasurementError
from autotune.stats.histogram import Histogram, difference, total
from autotune.untrusted import first_fault, plain

MAX_OUTPUT_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True)
class Counters:
    """What a job has done: since the start of fio, or between two such states.

    `reads` and `writes` are their latencies in ns, from submission to completion; `bytes` are
    those of both, `written` of the writes alone. The `seconds` of a probe are those of all its
    users together.
    """

    seconds: float
    bytes: int
    reads: Histogram
    writes: Histogram
    written: int = 0

    @property
    def requests(self) -> int:
        return sum(self.reads.values()) + sum(self.writes.values())

    def since(self, earlier: "Counters") -> "Counters":
        """What happened after `earlier`."""
        return Counters(
            self.seconds - earlier.seconds,
            self.bytes - earlier.bytes,
            difference(self.reads, earlier.reads),
            difference(self.writes, earlier.writes),
            self.written - earlier.written,
        )


_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class _Latency(BaseModel):
    model_config = ConfigDict(extra="ignore")
    bins: dict[_Count, _Count] = {}


class _Direction(BaseModel):
    model_config = ConfigDict(extra="ignore")
    io_bytes: _Count
    lat_ns: _Latency


class _JobDocument(BaseModel):
    model_config = ConfigDict(extra="ignore")
    jobname: str
    error: Annotated[int, Field(ge=0, lt=1 << 31)]
    job_runtime: _Count
    """In ms; of all processes of the job together."""
    read: _Direction
    write: _Direction


class _Document(BaseModel):
    model_config = ConfigDict(extra="ignore")
    jobs: list[_JobDocument]


def parse(document: object) -> dict[str, Counters]:
    """A document's counters by job name; the processes of one job are added up.

    Raise MeasurementError if it is not fio's, or if a job reports an error.
    """
    try:
        jobs = _Document.model_validate(document).jobs
    except ValidationError as error:
        raise MeasurementError(
            f"fio's answer is not what fio 3 gives ({first_fault(error)}); check `fio --version`."
        ) from None
    by_name: dict[str, list[_JobDocument]] = {}
    for job in jobs:
        if job.error:
            name = plain(job.jobname)
            raise MeasurementError(f'fio failed in job "{name}": {os.strerror(job.error)}.')
        by_name.setdefault(job.jobname, []).append(job)
    return {name: _added_up(parts) for name, parts in by_name.items()}


def _added_up(parts: list[_JobDocument]) -> Counters:
    directions = [d for part in parts for d in (part.read, part.write)]
    return Counters(
        max(part.job_runtime for part in parts) / 1000,
        sum(d.io_bytes for d in directions),
        total([part.read.lat_ns.bins for part in parts]),
        total([part.write.lat_ns.bins for part in parts]),
        sum(part.write.io_bytes for part in parts),
    )


_OUTSIDE_A_STRING, _IN_A_STRING = re.compile(r'["}]|\{+'), re.compile(r'["\\]')


class Documents:
    """Cuts a stream of text into JSON documents, whatever stands between them.

    It looks at each character once, however small the pieces that the text comes in.
    """

    def __init__(self) -> None:
        self._text = ""
        self._seen = 0
        self._depth = 0
        self._quoted = False

    def feed(self, text: str) -> list[object]:
        """The documents that are complete with this text; what only looks like one is left out.
        Raise MeasurementError when what is pending grows past any sensible size."""
        self._text += text
        found: list[object] = []
        start = 0
        while (end := self._end()) is not None:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(json.loads(self._text[self._text.index("{", start) : end]))
            start = end
        self._text, self._seen = self._text[start:], self._seen - start
        if len(self._text) > MAX_OUTPUT_BYTES:
            raise MeasurementError("fio's output never ends; check `fio --version`.")
        return found

    def _end(self) -> int | None:
        """Where the next document ends, or None if it is not there in full yet."""
        while self._seen < len(self._text):
            pattern = _IN_A_STRING if self._quoted else _OUTSIDE_A_STRING
            mark = pattern.search(self._text, self._seen)
            if mark is None:
                self._seen = len(self._text)
                break
            if mark[0] == "\\":
                # With the character that it escapes, which may not be there yet.
                if mark.end() == len(self._text):
                    self._seen = mark.start()
                    break
                self._seen = mark.end() + 1
                continue
            self._seen = mark.end()
            if mark[0][0] == "{":
                self._depth += len(mark[0])
            elif self._depth and mark[0] == '"':
                self._quoted = not self._quoted
            elif self._depth and mark[0] == "}":
                self._depth -= 1
                if self._depth == 0:
                    return self._seen
        return None
