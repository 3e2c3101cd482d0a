"""What a guard leaves to a thread of its own."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from autotune.background import MOST, Background, write_line
from autotune.safety.signals import Signals


def test_what_blocks_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    free, done = threading.Event(), list[int]()
    background = Background()
    background(lambda: free.wait(20) and None)
    started = time.monotonic()
    for number in range(2 * MOST):
        background(lambda number=number: done.append(number))  # type: ignore[misc]
    assert time.monotonic() - started < 5
    free.set()
    background.close()
    assert done[:9] == list(range(9))
    assert len(done) < MOST


def test_a_reader_that_is_gone_is_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        background = Background()
        background(lambda: write_line("hello"))
        with pytest.raises(BrokenPipeError):
            background.close()


def test_a_terminal_stops_no_guard_and_is_told_so() -> None:
    told: list[str] = []
    signals = Signals()
    with signals.caught(told.append):
        os.kill(os.getpid(), signal.SIGTSTP)
        os.kill(os.getpid(), signal.SIGTTOU)
        assert signals.pause(0.01)
        assert signals.going()
        assert [text.split(",")[0] for text in told] == ["Ctrl-Z does not stop this"]
        os.kill(os.getpid(), signal.SIGTERM)
        assert not signals.going()
    assert signal.getsignal(signal.SIGTSTP) == signal.SIG_DFL
