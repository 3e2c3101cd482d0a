"""The only place that knows fio, with what its output means in `fio_output`.

fio runs with `--output-format=json+ --status-interval=1`: each second it prints a whole document
of counters since its start, with full latency histograms. Two documents subtracted are what
happened between them, so one stream of documents serves progress, the watch, steadiness and the
final figures, and the end of a phase is simply SIGINT. The document after that signal is prefixed
by a text line, and needed only to know what was written in all.
"""

import contextlib
import ctypes
import errno
import functools
import os
import re
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from autotune.errors import MeasurementError, RefusalError
from autotune.measure.fio_output import Counters, Documents, parse
from autotune.measure.workload import Load, Probe
from autotune.system.programs import UnseenError, output

NO_LIMIT: Mapping[str, int] = {}
STOP_TIMEOUT_S = 5.0
KILL_TIMEOUT_S = 2.0
SILENT_S = 3.0
"""It speaks each second; after so long without a word it may hang."""
LISTENS_S = 1.0
"""It is listened to at least as often, by who has the processor and the disks for that."""
READ_CHUNK_BYTES = 1 << 16
PART_BYTES = 1 << 20
IO_URING_SETUP = 425
"""The number of that system call, the same on all processors but alpha."""


@dataclass(frozen=True)
class Target:
    """Where a job reads or writes: `path`, from `offset_bytes`, over `size_bytes`."""

    path: Path
    size_bytes: int
    offset_bytes: int = 0


@dataclass(frozen=True)
class Job:
    """A load or a probe on a target. Jobs of one run have different names."""

    name: str
    does: Load | Probe
    target: Target


def folder(jobs: Sequence[Job]) -> Path | None:
    """Where fio has to run to find the file that it writes; None if it needs none.

    fio cuts a name at ":", ";" and "#" (seen on 3.33), and would write to what is left of it. So
    it never hears in which folder the file is.
    """
    return next((j.target.path.parent for j in jobs if not _is_device(j.target.path)), None)


def _is_device(path: Path) -> bool:
    return path.is_relative_to("/dev")


def _name(path: Path) -> str:
    name = str(path) if _is_device(path) else path.name
    if not re.fullmatch(r"[\w/.+!-]+", name, re.ASCII):
        raise RefusalError(
            f"fio would take {path} for something else, because of the characters in its name."
        )
    return name


def _arguments(job: Job) -> Iterator[str]:
    does, target = job.does, job.target
    yield f"--name={job.name}"
    yield f"--filename={_name(target.path)}"
    yield f"--offset={target.offset_bytes}"
    yield f"--bs={does.block_kib}k"
    if isinstance(does, Probe):
        yield f"--size={target.size_bytes}"
        yield "--rw=" + ("randrw" if does.writes else "randread")
        # fio holds each direction to its own rate (fio HOWTO, "rate_iops").
        reads = round(does.rate_iops * does.read_percent / 100)
        yield f"--rate_iops={reads},{does.rate_iops - reads}"
        # Requests come when they come, not when the last one is done: a slow array must not
        # slow its own probe, or the worst latencies would be left out.
        yield "--rate_process=poisson"
        yield "--iodepth=64"
        yield f"--rwmixread={does.read_percent}"
        yield "--direct=1"
        yield f"--ioengine={probe_engine()}"
        yield "--norandommap=1"
        return
    yield f"--rw={does.rw}"
    yield f"--rwmixread={does.read_percent}"
    yield f"--numjobs={does.streams}"
    if does.streams > 1 and not does.rw.startswith("rand"):
        # Each stream has a part of its own.
        part = target.size_bytes // does.streams // PART_BYTES * PART_BYTES
        yield f"--offset_increment={part}"
        yield f"--size={part}"
    else:
        yield f"--size={target.size_bytes}"
    if does.sync_every:
        yield f"--fsync={does.sync_every}"
    if does.rw.startswith("rand"):
        yield "--norandommap=1"
    if does.buffered:
        yield "--direct=0"
        yield "--ioengine=psync"
    else:
        yield "--direct=1"
        yield "--ioengine=libaio"
        yield f"--iodepth={does.depth}"


@functools.cache
def probe_engine() -> str:
    """io_uring where fio and the kernel have it, else libaio.

    A request that md lets wait, as RAID 10 does for a sync, keeps libaio from submitting the next
    ones, so that too few are seen to wait: the p99 was about right, and half of the others looked a
    tenth as slow as to readers of their own (`tests/lab/guest_probe.py`)."""
    try:
        known = output("fio", "fio", "--enghelp").split()
    except UnseenError:
        return "libaio"
    return "io_uring" if "io_uring" in known and _has_io_uring() else "libaio"


def _has_io_uring() -> bool:
    """Whether the kernel has it, and lets this process use it: a call without a place for the
    answer is refused for that reason (EFAULT) alone."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(IO_URING_SETUP, 1, None) < 0 and ctypes.get_errno() == errno.EFAULT


def command(
    jobs: Sequence[Job], max_seconds: float, seed: int, most: Mapping[str, int] = NO_LIMIT
) -> tuple[str, ...]:
    """The fio command of these jobs, to be run in their `folder`. It gets `--readonly` unless one
    of them writes. `most`: the bytes that each process of a job may read and write before it ends
    by itself."""
    readonly = not any(job.does.writes for job in jobs)
    common = (
        # Whatever becomes of autotune, fio does not outlive it.
        *("setpriv", "--pdeathsig", "KILL"),
        "fio",
        *(("--readonly",) if readonly else ()),
        "--output-format=json+",
        "--status-interval=1",
        "--eta=never",
        # md lets a request wait before it takes it, as RAID 10 does for a sync: that is submission
        # latency to fio, which the default percentiles leave out.
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--allow_file_create=0",
        # As threads, all jobs are one process, and one signal reaches them all.
        "--thread=1",
    )
    per_job = (f"--runtime={int(max_seconds) + 60}", f"--randseed={seed}")
    return common + tuple(
        a for job in jobs for a in (*_arguments(job), *_end(most.get(job.name)), *per_job)
    )


def _end(most: int | None) -> tuple[str, ...]:
    # fio respects io_size only if time_based is off (seen on 3.33), and then to the byte.
    return ("--time_based=1",) if most is None else ("--time_based=0", f"--io_size={most}")


class Fio:
    """A running fio. Use as a context manager: it is gone at the end, whatever happens."""

    def __init__(
        self,
        jobs: Sequence[Job],
        max_seconds: float,
        seed: int,
        most: Mapping[str, int] = NO_LIMIT,
    ) -> None:
        self._command = command(jobs, max_seconds, seed, most)
        self._folder = folder(jobs)
        self._documents = Documents()
        self._latest: Mapping[str, Counters] = {}
        streams = {job.name: getattr(job.does, "streams", 1) for job in jobs}
        self._most = {name: count * streams[name] for name, count in most.items()}
        self.silent_s = 0.0
        """For how long it has said nothing while it was listened to."""
        self._listened_s = 0.0
        self.hangs = False
        """It could not be ended: a read or write of its never returns from the kernel."""

    def __enter__(self) -> Self:
        try:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Ctrl-C is for autotune to handle: fio must not end on its own account.
                start_new_session=True,
            )
        except OSError as error:
            # As when another filesystem was just mounted over the folder.
            where = f" in {self._folder}" if self._folder else ""
            raise MeasurementError(f"fio cannot be started{where}: {error.strerror}.") from None
        assert self._process.stdout is not None
        self._listened_s = time.monotonic()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        return self

    @property
    def written(self) -> int:
        """The bytes written, to the last one once it has ended."""
        return sum(counters.written for counters in self._latest.values())

    @property
    def exhausted(self) -> bool:
        """Whether a job has read and written all that it may."""
        moved = {name: counters.bytes for name, counters in self._latest.items()}
        return any(moved.get(name, 0) >= most for name, most in self._most.items())

    @property
    def pid(self) -> int:
        return self._process.pid

    def poll(self, timeout_s: float) -> Mapping[str, Counters] | None:
        """The newest counters by job name, or None if fio said nothing new within the time.

        Raise MeasurementError if fio ended by itself, or reports an error.
        """
        left = timeout_s
        newest: Mapping[str, Counters] | None = None
        while newest is None and left > 0:
            began = time.monotonic()
            heard = self._selector.select(left)
            left -= time.monotonic() - began
            self._listened(bool(heard))
            if not heard:
                break
            assert self._process.stdout is not None
            data = os.read(self._process.stdout.fileno(), READ_CHUNK_BYTES)
            if not data:
                raise MeasurementError(f"fio ended before its time: {self._last_words()}")
            for document in self._documents.feed(data.decode("utf-8", "replace")):
                self._latest = newest = parse(document)
        return newest

    def _listened(self, heard: bool) -> None:
        now = time.monotonic()
        # The rest of a longer time is not fio's silence: this process did not come to listen, on a
        # machine that is short of processors, waits for its root disk, or was stopped itself.
        passed = min(now - self._listened_s, LISTENS_S)
        self.silent_s = 0.0 if heard else self.silent_s + passed
        self._listened_s = now

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        code = self._process.wait()
        said = self._process.stderr.read(4096).decode("utf-8", "replace").strip()
        lines = [line for line in said.splitlines() if line.strip()]
        return f"exit status {code}, {lines[-1] if lines else 'no message'}."

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stop_s = KILL_TIMEOUT_S if self.silent_s > SILENT_S else STOP_TIMEOUT_S
        for number, timeout_s in ((signal.SIGINT, stop_s), (signal.SIGKILL, KILL_TIMEOUT_S)):
            if self._process.poll() is None:
                self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said, _ = self._process.communicate(timeout=timeout_s)
                    self._hear_the_end(said)
        self.hangs = self._process.poll() is None
        self._selector.close()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def _hear_the_end(self, said: bytes) -> None:
        """What was done since the last document counts as written all the same."""
        with contextlib.suppress(MeasurementError):
            for document in self._documents.feed(said.decode("utf-8", "replace")):
                self._latest = parse(document)
