"""A terminal of a given size, with what is on it by now."""

import fcntl
import os
import pty
import select
import struct
import termios

import pyte


class Terminal:
    """`below` is its end for a process. Use as a context manager."""

    def __init__(self, width: int, height: int) -> None:
        self._above, self.below = pty.openpty()
        size = struct.pack("HHHH", height, width, 0, 0)
        fcntl.ioctl(self.below, termios.TIOCSWINSZ, size)
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self.sent = 0
        """Bytes that came until the last look."""

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._above)
        os.close(self.below)

    def lines(self) -> list[str]:
        """What is on it, line by line."""
        while select.select([self._above], [], [], 0)[0]:
            got = os.read(self._above, 1 << 16)
            self.sent += len(got)
            self._stream.feed(got)
        return list(self._screen.display)

    def text(self) -> str:
        """The same with single blanks."""
        return " ".join(" ".join(self.lines()).split())
