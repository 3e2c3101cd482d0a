"""What may take for ever, as writing to a pipe that nobody reads, beside the work itself."""

import io
import os
import queue
import sys
import threading
from collections.abc import Callable
from typing import TextIO

MOST = 100
JOIN_S = 0.1


class Background:
    """Does one thing after the other in a thread of its own. Settings that are only tried must not
    stay, nor a throttle stay shut, because somebody does not read the output. So what comes while
    MOST things wait is dropped."""

    def __init__(self) -> None:
        self._waiting: queue.Queue[Callable[[], None] | None] = queue.Queue(MOST)
        self._fault: OSError | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def __call__(self, what: Callable[[], None]) -> None:
        """Have it done. OSError if an earlier one failed so."""
        if self._fault is not None:
            raise self._fault
        if self._waiting.qsize() < MOST - 1:
            self._waiting.put_nowait(what)

    @property
    def idle(self) -> bool:
        """Whether all is done."""
        return self._waiting.unfinished_tasks == 0

    def close(self) -> None:
        """Wait until all is done; Ctrl-C ends that. OSError as before."""
        # There is always room for it.
        self._waiting.put_nowait(None)
        while self._thread.is_alive():
            self._thread.join(JOIN_S)
        if self._fault is not None:
            raise self._fault

    def _work(self) -> None:
        while (what := self._waiting.get()) is not None:
            try:
                what()
            except OSError as error:
                self._fault = error
                return
            finally:
                self._waiting.task_done()


def write_line(text: str) -> None:
    """Print without Python's buffer, whose lock a blocked thread would keep to the end."""
    write(sys.stdout, f"{text}\n")


def write(stream: TextIO, text: str) -> None:
    """The same to any stream, as it is."""
    try:
        descriptor = stream.fileno()
    except io.UnsupportedOperation:
        # Kept in memory.
        stream.write(text)
        return
    # A stream that stands for another one may not say.
    data = text.encode(stream.encoding or "utf-8", "replace")
    while data:
        data = data[os.write(descriptor, data) :]
