"""The one channel between host and guest: frames of a kind and some bytes, over a serial line."""

import os
import struct
from collections.abc import Iterator
from enum import Enum

_HEADER = struct.Struct(">cI")
_READ_BYTES = 65_536


class Kind(Enum):
    """What a frame carries."""

    # To the guest.
    INPUT = b"i"
    """For the command's standard input; empty: its end."""
    SIGNAL = b"s"
    """The number of a signal for the command, as text."""
    WINDOW = b"w"
    """Rows and columns of the terminal, as text."""

    # To the host.
    READY = b"r"
    """The command starts now."""
    OUTPUT = b"o"
    ERROR = b"e"
    """What the command wrote to standard output, and to standard error."""
    EXIT = b"x"
    """The command's exit status, as text. The last frame."""
    FAILURE = b"f"
    """Why the lab cannot be set up, as text. The last frame."""


class WireClosedError(Exception):
    """The other side is gone."""


class Wire:
    """One end. The file descriptor must be blocking, and raw if it is a terminal's."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._received = bytearray()

    def fileno(self) -> int:
        """Return the descriptor, to wait for."""
        return self._fd

    def send(self, kind: Kind, data: bytes = b"") -> None:
        """Send one frame whole. Raise WireClosedError if nobody is there."""
        frame = memoryview(_HEADER.pack(kind.value, len(data)) + data)
        try:
            while frame:
                frame = frame[os.write(self._fd, frame) :]
        except OSError as error:
            raise WireClosedError from error

    def receive(self) -> Iterator[tuple[Kind, bytes]]:
        """Read once, and yield the frames that are now whole, if any. Raise WireClosedError.

        Frames that the caller leaves unread are the first of the next time.
        """
        try:
            data = os.read(self._fd, _READ_BYTES)
        except OSError as error:
            raise WireClosedError from error
        if not data:
            raise WireClosedError
        self._received += data
        yield from self.received()

    def received(self) -> Iterator[tuple[Kind, bytes]]:
        """Yield the whole frames that were read already."""
        while len(self._received) >= _HEADER.size:
            kind, length = _HEADER.unpack_from(self._received)
            end = _HEADER.size + length
            if len(self._received) < end:
                return
            payload = bytes(self._received[_HEADER.size : end])
            del self._received[:end]
            yield Kind(kind), payload
