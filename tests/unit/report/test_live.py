"""A run's progress on terminals that behave badly."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

RUN = """
import os, signal
from rich.console import Console
from autotune.report.live import LiveReporter
from autotune.cli.terminal import notice

ended = []
signal.signal(signal.SIGTERM, lambda *_: ended.append(1))
with LiveReporter(Console(stderr=True)) as reporter:
    while not ended:
        reporter.step("x" * 200)
        reporter.progress("y" * 200, 0.5, None)
        notice("z" * 200)
    # As the originals would go back now.
    os.write(1, b"back\\n")
"""


def is_full(terminal: int) -> bool:
    return not select.select([], [terminal], [], 0.5)[1]


def test_a_terminal_that_takes_nothing_keeps_no_run_from_ending() -> None:
    """As after Ctrl-S, or on an ssh whose other end sleeps."""
    above, below = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", RUN], stderr=below, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        while not is_full(below):
            pass
        # Until who waits for it does.
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == b"back\n"
    finally:
        process.kill()
        process.communicate(timeout=20)
        os.close(above)
        os.close(below)


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    above, below = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", RUN], stderr=below, stdout=subprocess.PIPE)
    os.close(below)
    assert process.stdout is not None
    try:
        assert os.read(above, 100)
        os.close(above)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == b"back\n"
    finally:
        process.kill()
        process.communicate(timeout=20)
