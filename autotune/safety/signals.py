"""Signals that end a run or a guard in an orderly way."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

from autotune.errors import SignalledError

PAUSE_S = 0.1
_NAMES = {signal.SIGINT: "Ctrl-C", signal.SIGHUP: "the end of its terminal (SIGHUP)"}
STAYS = (
    "Ctrl-Z does not stop this, since settings that are only tried, or that hold a sync back, "
    "would stay in force; Ctrl-C ends it, and the original settings come back."
)


class Signals:
    """SIGINT, SIGTERM and SIGHUP only leave a mark, their `name` for people: nothing is cut off
    in the middle. No terminal stops the process: what stops is not there to put anything back."""

    def __init__(self, stays: str = STAYS) -> None:
        """`stays`: what is said to Ctrl-Z."""
        self.name = ""
        self._stays = stays
        self.count = 0
        """How many came."""
        self._notice: Callable[[str], None] = lambda _text: None
        self._to_stop = False
        self._at_once = False

    @contextlib.contextmanager
    def caught(self, notice: Callable[[str], None]) -> Iterator[None]:
        """Inside this context, signals only leave a mark. `notice` is told why Ctrl-Z (SIGTSTP)
        does nothing."""
        self._notice = notice
        numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGTSTP]
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            # As nohup has it: a guard is to outlive who has started it.
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, self._mark) for number in numbers}
        # For what writes to its terminal from the background. With a handler that would never end.
        before[signal.SIGTTOU] = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _mark(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTSTP:
            self._to_stop = True
        else:
            self.name = _NAMES.get(signal.Signals(number), signal.Signals(number).name)
            self.count += 1
            if self._at_once:
                raise self.ended()

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside this context, one that asks for the end raises SignalledError: for work that only
        computes, may take minutes, and can be cut off anywhere."""
        self._at_once = True
        try:
            if not self.going():
                raise self.ended()
            yield
        finally:
            self._at_once = False

    def ended(self) -> SignalledError:
        """What says that a signal has ended a run."""
        return SignalledError(f"Stopped by {self.name}; the original settings are put back.")

    def going(self) -> bool:
        """Whether no signal has asked for the end yet."""
        if self._to_stop:
            self._to_stop = False
            self._notice(self._stays)
        return not self.name

    def pause(self, seconds: float) -> bool:
        """Wait so long; False as soon as there was a signal."""
        deadline = time.monotonic() + seconds
        while self.going() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, PAUSE_S))
        return not self.name
