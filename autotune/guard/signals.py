"""Signals that a guard heeds."""

import contextlib
import signal
import time
from collections.abc import Iterator
from types import FrameType

PAUSE_S = 0.1


class Signals:
    """SIGINT, SIGTERM and SIGHUP only leave a mark: nothing is cut off in the middle."""

    def __init__(self) -> None:
        self.name = ""

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Meanwhile they do."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._mark) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _mark(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name

    def pause(self, seconds: float) -> bool:
        """Wait so long; False as soon as there was a signal."""
        deadline = time.monotonic() + seconds
        while not self.name and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, PAUSE_S))
        return not self.name
