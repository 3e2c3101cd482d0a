"""A signal reaches a strategy that thinks for long."""

import os
import signal
import threading
import time
from typing import Any, cast

import pytest

from autotune.errors import SignalledError
from autotune.problem.strategy import Problem
from autotune.safety.signals import Signals
from autotune.tuning.interruptible import Interruptible

NO_PROBLEM = cast("Problem", None)
LONG_S = 20.0


class Ponderer:
    """A strategy that computes for long, whatever it is asked."""

    def __init__(self, _problem: Problem) -> None:
        pass

    def ponder(self, *_asked: Any) -> None:
        until = time.monotonic() + LONG_S
        while time.monotonic() < until:
            sum(range(1000))

    ask = tell = recommend = weigh = ponder


@pytest.mark.parametrize("method", ["ask", "tell", "recommend", "weigh"])
def test_a_signal_ends_it_at_once(method: str) -> None:
    signals, asked = Signals(), {"tell": (None,), "weigh": ((), {})}.get(method, ())
    with signals.caught(print):
        strategy = Interruptible(cast("Any", Ponderer), signals)(NO_PROBLEM)
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        began = time.monotonic()
        with pytest.raises(SignalledError, match="SIGTERM; the original settings are put back"):
            getattr(strategy, method)(*asked)
        assert time.monotonic() - began < LONG_S / 2


def test_a_strategy_that_is_made_for_long_is_ended_too() -> None:
    signals = Signals()

    def make(_problem: Problem) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        Ponderer(_problem).ponder()

    began = time.monotonic()
    with signals.caught(print), pytest.raises(SignalledError, match="Ctrl-C"):
        Interruptible(make, signals)(NO_PROBLEM)
    assert time.monotonic() - began < LONG_S / 2
