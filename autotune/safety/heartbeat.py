"""How a guardian notices that its tuner was stopped (SIGSTOP, a frozen control group), or hangs in
the kernel (a filesystem that does not answer): such a one would leave in force what is only tried,
and a guard's throttle shut. Light."""

import contextlib
import os
import select
import signal
import threading
from enum import Enum, auto
from pathlib import Path

from autotune.system import sysfs

BEAT_S = 5.0
SILENCE_S = 60.0
"""A thread of its own beats, so nothing but a stop, or a wait in the kernel that does not end,
silences a tuner for so long, and two beats more. While the whole machine sleeps, neither counts."""
DONE = b"!"


class Heartbeat:
    """Writes a byte into a pipe every few seconds, as long as the main thread is not in the same
    wait in the kernel as the time before, until it is stopped, which closes that end."""

    def __init__(self, writing: int) -> None:
        self._writing = writing
        # Nobody reads if the guardian is stopped.
        os.set_blocking(writing, False)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        waits = ""
        while not self._over.wait(BEAT_S):
            earlier, waits = waits, _wait_of_main_thread()
            if waits and waits == earlier:
                # No signal reaches it there, Ctrl-C neither.
                continue
            with contextlib.suppress(BrokenPipeError, BlockingIOError):
                os.write(self._writing, b".")

    def stop(self, done: bool = False) -> None:
        """`done`: nothing is left to put back."""
        self._over.set()
        self._thread.join()
        if done:
            with contextlib.suppress(BrokenPipeError, BlockingIOError):
                os.write(self._writing, DONE)
        os.close(self._writing)


def _wait_of_main_thread() -> str:
    """In which wait that no signal ends the main thread is; "" if in none. Stores to sysfs wait in
    threads of their own."""
    # In a child of a fork, Python's own number of that thread may be the parent's (3.11).
    lines = sysfs.read_or(Path(f"/proc/self/task/{os.getpid()}/status"), "").splitlines()
    if not any(line.startswith("State:\tD") for line in lines):
        return ""
    # It counts the switches to other threads: as many as before, and it is the same wait.
    return "\n".join(line for line in lines if "ctxt_switches" in line)


class End(Enum):
    """How a tuner has ended: it said that nothing is left to put back, it did not, it was killed
    since it was stopped, or it was and cannot die, as one that waits in the kernel for a filesystem
    that does not answer. Such a one does nothing more, and holds its locks."""

    DONE = auto()
    DEAD = auto()
    KILLED = auto()
    STUCK = auto()


def wait_for_the_end(tuner: int) -> End:
    """Wait until the pipe on standard input breaks. The tuner (process number) is killed if it says
    nothing for long, which breaks it."""
    last, killed = b"", False
    while True:
        # Where both were stopped for long, as by `docker pause`, the first wait ends before the
        # tuner can say anything.
        if _says_something(SILENCE_S) or _says_something(2 * BEAT_S):
            if not (heard := os.read(0, 1 << 16)):
                if last.endswith(DONE):
                    return End.DONE
                return End.KILLED if killed else End.DEAD
            last = heard
        elif killed:
            return End.STUCK
        # The number is its own as long as this process is its child.
        elif os.getppid() == tuner:
            # The log comes last, since it may wait for the disk that it is on.
            os.kill(tuner, signal.SIGKILL)
            killed = True


def _says_something(within_s: float) -> bool:
    return bool(select.select((0,), (), (), within_s)[0])
