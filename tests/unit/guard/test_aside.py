"""What a guard leaves to a thread of its own."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from autotune.guard.aside import MOST, Aside, write_line
from autotune.safety.signals import Signals


def test_what_blocks_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    free, done = threading.Event(), list[int]()
    aside = Aside()
    aside(lambda: free.wait(20) and None)
    started = time.monotonic()
    for number in range(2 * MOST):
        aside(lambda number=number: done.append(number))  # type: ignore[misc]
    assert time.monotonic() - started < 5
    free.set()
    aside.close()
    assert done[:9] == list(range(9))
    assert len(done) < MOST


def test_a_reader_that_is_gone_is_heard_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        aside = Aside()
        aside(lambda: write_line("hello"))
        with pytest.raises(BrokenPipeError):
            aside.close()


def test_a_guard_that_is_sent_to_the_background_opens_its_valve_first() -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        signals = Signals(pausable=True)
        with signals.caught():
            os.kill(os.getpid(), signal.SIGTSTP)
            signals.stop_if_asked(lambda: os.write(writing, b"open") and None)
        os._exit(0 if not signals.name else 1)
    _, status = os.waitpid(child, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert os.read(reading, 10) == b"open"
    os.kill(child, signal.SIGCONT)
    assert os.waitpid(child, 0)[1] == 0
