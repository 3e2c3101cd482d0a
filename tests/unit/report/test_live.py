"""A run's progress on terminals that behave badly."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pyte

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


BEHIND = """
import os, sys, time
import synthetic_run
from autotune.cli.terminal import console
from autotune.report import display, live

display.PERIOD_S = 0.0
with live.LiveReporter(console(stderr=True), "Ctrl-C ends it.") as reporter:
    for number in range(5):
        reporter.step("a step")
        time.sleep(0.1)
    for number in range(3000):
        if number > 1000 and number % 50 == 0:
            # What is drawn gets higher meanwhile.
            reporter.trial(synthetic_run.trial(number, "search", {}, {}), None)
        reporter.progress(f"number {number:05}", 0.5, None)
        if number == 1500:
            os.write(1, b"full\\n")
            sys.stdin.readline()
    # Until it has taken all.
    while not reporter._beside.idle:
        time.sleep(0.01)
    reporter.progress("the last one", 0.5, None)
    while not reporter._beside.idle:
        time.sleep(0.01)
    os.write(1, b"drawn\\n")
    sys.stdin.readline()
"""


def test_a_terminal_that_was_slow_shows_whole_drawings_again() -> None:
    """What it did not take is left out by whole drawings."""
    above, below = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", BEHIND],
        stderr=below, stdout=subprocess.PIPE, stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdin is not None
    screen = pyte.Screen(80, 24)
    stream = pyte.ByteStream(screen)
    try:
        assert process.stdout.readline() == b"full\n"
        process.stdin.write(b"\n")
        process.stdin.flush()
        while not select.select([process.stdout], [], [], 0)[0]:
            if select.select([above], [], [], 0.1)[0]:
                stream.feed(os.read(above, 1 << 16))
        while select.select([above], [], [], 0.5)[0]:
            stream.feed(os.read(above, 1 << 16))
        lines = [line for line in screen.display if line.strip()]
        assert [line.split()[0] for line in lines] == [
            *(["a"] * 5), "the", "best", "trial",
            *map(str, range(2600, 3000, 50)), "Ctrl-C",
        ]  # fmt: skip
    finally:
        process.kill()
        process.communicate(timeout=20)
        os.close(above)
        os.close(below)
