"""A running fio; its command line is in `fio_command`, what it prints in `fio_output`.

fio runs with `--output-format=json+ --status-interval=1`: each second it prints a whole document
of counters since its start, with full latency histograms. Two documents subtracted are what
happened between them, so one stream of documents serves progress, the watch, steadiness and the
final figures, and the end of a phase is simply SIGINT. The document after that signal is prefixed
by a text line, and needed only to know what was written in all.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from autotune.errors import MeasurementError, is_signalled
from autotune.measure.fio_command import NO_LIMIT, Job, command, descriptors, folder
from autotune.measure.fio_output import Counters, Documents, parse
from autotune.measure.missed import Missed
from autotune.measure.workload import Probe

STOP_TIMEOUT_S = 5.0
KILL_TIMEOUT_S = 2.0
SILENT_S = 3.0
"""It speaks each second; after so long without a word it may hang."""
LISTENS_S = 1.0
"""It is listened to at least as often, by who has the processor and the disks for that."""
READ_CHUNK_BYTES = 1 << 16


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
        self._folder, self._inherits = folder(jobs), descriptors(jobs)
        self._documents = Documents()
        self._latest: Mapping[str, Counters] = {}
        self._most = {j.name: most[j.name] * j.processes for j in jobs if j.name in most}
        probes = {job.name: job.does for job in jobs if isinstance(job.does, Probe)}
        self._missed = {n: (Missed(p.each_iops), Missed(p.each_iops)) for n, p in probes.items()}
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
                pass_fds=self._inherits,
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
                self._latest = newest = self._counters(document)
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
        self, _kind: object = None, error: BaseException | None = None, *_: object
    ) -> None:
        hurry = is_signalled(error) or self.silent_s > SILENT_S
        stop_s = KILL_TIMEOUT_S if hurry else STOP_TIMEOUT_S
        for number, timeout_s in ((signal.SIGINT, stop_s), (signal.SIGKILL, KILL_TIMEOUT_S)):
            if self._process.poll() is None:
                self._process.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    said, _errors = self._process.communicate(timeout=timeout_s)
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
                self._latest = self._counters(document)

    def _counters(self, document: object) -> Mapping[str, Counters]:
        counters = parse(document)
        for name, (reads, writes) in self._missed.items():
            if name in counters:
                told = counters[name]
                felt = reads.felt(told.reads), writes.felt(told.writes)
                counters[name] = replace(told, reads=felt[0], writes=felt[1])
        return counters
