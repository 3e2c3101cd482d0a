"""Signals that end a run or a guard in an orderly way."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

PAUSE_S = 0.1


class Signals:
    """SIGINT, SIGTERM and SIGHUP only leave a mark, their `name`: nothing is cut off in the
    middle. If `pausable`, so does SIGTSTP (Ctrl-Z), after which the process stops once that does no
    harm."""

    def __init__(self, pausable: bool = False) -> None:
        self.name = ""
        self._numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        self._numbers += [signal.SIGTSTP] if pausable else []
        self._to_stop = False

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Meanwhile they do."""
        before = {number: signal.signal(number, self._mark) for number in self._numbers}
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
