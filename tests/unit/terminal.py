"""A terminal of a given size, as a script in a process of its own finds it."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pyte


def on_a_terminal(
    script: str, width: int, height: int, **environment: str
) -> tuple[pyte.Screen, bytes, str]:
    """What a script does to a terminal: the screen at the end, all that was sent, and the last
    screen that said what Ctrl-C does."""
    above, below = pty.openpty()
    fcntl.ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    env = {
        **{k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")},
        **{"TERM": "xterm-256color", "PYTHONPATH": ":".join(sys.path), **environment},
    }
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=below, stdout=below, stderr=below, env=env
    )
    os.close(below)
    screen, sent = pyte.Screen(width, height), b""
    stream = pyte.ByteStream(screen)
    before = ""
    while True:
        try:
            got = os.read(above, 1 << 16)
        except OSError:
            break
        if not got:
            break
        sent += got
        for part in got.splitlines(keepends=True):
            stream.feed(part)
            shown = "\n".join(screen.display)
            assert shown.count("Ctrl-C") <= 1, shown
            before = shown if "Ctrl-C" in shown else before
    os.close(above)
    assert process.wait(60) == 0, screen.display
    return screen, sent, before
