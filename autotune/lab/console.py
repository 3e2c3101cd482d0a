"""The host's end of the wire: the caller's terminal, streams and signals."""

import contextlib
import os
import select
import selectors
import signal
import socket
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from types import FrameType

from autotune.lab.wire import Kind, Wire

_CHUNK = 16_384  # what a wire that takes anything takes without blocking
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_INTERRUPT = b"\x03"
_PATIENCE_S = 2.0
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGWINCH)


class Console:
    """Carries the caller's input and signals to the guest, and the command's output back."""

    def __init__(self, wire: Wire, terminal: bool) -> None:
        self._wire = wire
        self._terminal = terminal
        self._interrupts: list[float] = []
        self._selector = selectors.PollSelector()

    def attend(self) -> int:
        """Serve until the command ends. Return its exit status.

        Raise WireClosedError if the guest dies, KeyboardInterrupt if it was interrupted three
        times in a row.
        """
        self._selector.register(self._wire, _READ, self._from_guest)
        if not sys.stdin.closed:
            self._selector.register(0, _READ, self._from_caller)
        with contextlib.ExitStack() as stack:
            if threading.current_thread() is threading.main_thread():
                signals = stack.enter_context(_signals())
                self._selector.register(signals, _READ, self._signals(signals))
            if self._terminal:
                stack.enter_context(_raw_input())
                self._tell_window()
            # A quick command's first output came together with the news that it starts.
            status = self._pass_on(self._wire.received())
            while status is None:
                for key, _ in self._selector.select():
                    status = key.data()
                    if status is not None:
                        break
            return status

    def _from_guest(self) -> int | None:
        return self._pass_on(self._wire.receive())

    def _pass_on(self, frames: Iterator[tuple[Kind, bytes]]) -> int | None:
        for kind, data in frames:
            if kind is Kind.OUTPUT:
                _write(1, data)
            elif kind is Kind.ERROR:
                _write(2, data)
            elif kind is Kind.EXIT:
                return int(data)
        return None

    def _from_caller(self) -> None:
        if not select.select([], [self._wire], [], 0)[1]:
            # To block here could block the guest, which may be waiting for us to take its output.
            self._selector.unregister(0)
            self._selector.modify(self._wire, _READ | _WRITE, self._from_guest_or_to_it)
            return
        try:
            data = os.read(0, _CHUNK)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(0)
        if _INTERRUPT in data and self._terminal:
            self._interrupted()
        self._wire.send(Kind.INPUT, data)

    def _from_guest_or_to_it(self) -> int | None:
        if select.select([], [self._wire], [], 0)[1]:
            self._selector.modify(self._wire, _READ, self._from_guest)
            self._selector.register(0, _READ, self._from_caller)
        if select.select([self._wire], [], [], 0)[0]:
            return self._from_guest()
        return None

    def _signals(self, source: socket.socket) -> Callable[[], None]:
        def forward() -> None:
            for number in source.recv(_CHUNK):
                if number == signal.SIGWINCH:
                    self._tell_window()
                    continue
                if number == signal.SIGINT:
                    self._interrupted()
                self._wire.send(Kind.SIGNAL, str(number).encode())

        return forward

    def _interrupted(self) -> None:
        """Give up on a guest that does not react."""
        now = time.monotonic()
        self._interrupts = [at for at in self._interrupts if now - at < _PATIENCE_S] + [now]
        if len(self._interrupts) >= 3:
            raise KeyboardInterrupt

    def _tell_window(self) -> None:
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(1)
            self._wire.send(Kind.WINDOW, f"{size.lines} {size.columns}".encode())


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


@contextlib.contextmanager
def _signals() -> Iterator[socket.socket]:
    """Turn signals into bytes, one a signal, to read from a socket."""

    def nothing(number: int, frame: FrameType | None) -> None:
        pass

    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    old_fd = signal.set_wakeup_fd(sender.fileno())
    old = {number: signal.signal(number, nothing) for number in _FORWARDED}
    try:
        yield receiver
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(old_fd)
        receiver.close()
        sender.close()


@contextlib.contextmanager
def _raw_input() -> Iterator[None]:
    """Let every key go to the guest, if there are keys."""
    if not os.isatty(0):
        yield
        return
    old = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # keeping what was typed ahead
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, old)
