"""Signals that a guard heeds."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

PAUSE_S = 0.1


class Signals:
    """SIGINT, SIGTERM and SIGHUP only leave a mark: nothing is cut off in the middle. So does
    SIGTSTP (Ctrl-Z), after which the process stops once that does no harm."""

    def __init__(self) -> None:
        self.name = ""
        self._to_stop = False

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Meanwhile they do."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)
        before = {number: signal.signal(number, self._mark) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _mark(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._to_stop = True
        else:
            self.name = signal.Signals(number).name

    def stop_if_asked(self, first: Callable[[], None] = lambda: None) -> None:
        """Stop until somebody lets this go on (`fg`), if that was asked for; `first` do this."""
        if self._to_stop:
            self._to_stop = False
            first()
            os.kill(os.getpid(), signal.SIGSTOP)

    def pause(self, seconds: float) -> bool:
        """Wait so long; False as soon as there was a signal."""
        deadline = time.monotonic() + seconds
        self.stop_if_asked()
        while not self.name and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, PAUSE_S))
        return not self.name
