"""Runs the command in the guest, its input and output carried over the wire."""

import contextlib
import fcntl
import os
import selectors
import signal
import struct
import subprocess
import termios
from typing import IO

from autotune.lab.plan import GuestPlan
from autotune.lab.wire import Kind, Wire

_CHUNK = 65_536
_REAP_S = 1.0
_NOT_FOUND, _NOT_RUN = 127, 126
_END_OF_TRANSMISSION = b"\x04"


class _Session:
    """The running command and the ends of its streams that we hold."""

    def __init__(self, plan: GuestPlan, wire: Wire) -> None:
        self._wire = wire
        self._selector = selectors.PollSelector()
        self._unwritten = bytearray()
        self._input_ended = False
        self.terminal = plan["terminal"]
        if self.terminal:
            master, slave = os.openpty()
            self.process = self._start(plan, slave, slave, slave)
            os.close(slave)
            self.outputs = {master: Kind.OUTPUT}
            self.input = os.dup(master)
        else:
            self.process = self._start(plan, subprocess.PIPE, subprocess.PIPE, subprocess.PIPE)
            streams = self.process.stdin, self.process.stdout, self.process.stderr
            self.input, output, error = (_detach(stream) for stream in streams)
            self.outputs = {output: Kind.OUTPUT, error: Kind.ERROR}
        for fd in (self.input, *self.outputs):
            os.set_blocking(fd, False)

    def _start(self, plan: GuestPlan, *streams: int) -> subprocess.Popen[bytes]:
        def take_terminal() -> None:
            if self.terminal:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        return subprocess.Popen(
            plan["command"],
            stdin=streams[0],
            stdout=streams[1],
            stderr=streams[2],
            cwd=plan["directory"],
            env=plan["environment"],
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - there are no threads here
        )

    def serve(self) -> int:
        """Carry data both ways until the command ends. Return its exit status."""
        ended = os.pidfd_open(self.process.pid)
        for fd in (self._wire.fileno(), ended, *self.outputs):
            self._selector.register(fd, selectors.EVENT_READ)
        while True:
            ready = {key.fd for key, _ in self._selector.select(_REAP_S)}
            for fd in ready & self.outputs.keys():
                self._read(fd)
            if self._wire.fileno() in ready:
                for kind, data in self._wire.receive():
                    self._obey(kind, data)
            if self.input in ready:
                self._write()
            if ended in ready:
                break
            self._reap()
        for fd in list(self.outputs):
            while fd in self.outputs and self._read(fd):
                pass
        status = self.process.wait()
        return status if status >= 0 else 128 - status

    def _read(self, fd: int) -> bool:
        """Pass on what the command wrote. Return whether there was anything."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose other end is closed
            data = b""
        if data:
            self._wire.send(self.outputs[fd], data)
        else:
            self._selector.unregister(fd)
            del self.outputs[fd]
        return bool(data)

    def _obey(self, kind: Kind, data: bytes) -> None:
        if kind is Kind.INPUT:
            self._unwritten += data
            self._input_ended |= not data
            self._write()
        elif kind is Kind.SIGNAL:
            self._signal(int(data))
        elif kind is Kind.WINDOW and self.terminal:
            rows, columns = map(int, data.split())
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(self.input, termios.TIOCSWINSZ, size)

    def _signal(self, number: int) -> None:
        group = os.tcgetpgrp(self.input) if self.terminal else self.process.pid
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, number)

    def _write(self) -> None:
        """Give the command what input it takes now, and ask to be told when it takes more."""
        if self.input < 0:
            return
        if self._input_ended and self.terminal:
            self._unwritten += _END_OF_TRANSMISSION
            self._input_ended = False
        try:
            while self._unwritten:
                del self._unwritten[: os.write(self.input, self._unwritten)]
        except BlockingIOError:
            self._want_to_write(True)
            return
        except OSError:  # it reads no more
            self._unwritten.clear()
            self._input_ended = not self.terminal
        self._want_to_write(False)
        if self._input_ended:
            os.close(self.input)
            self.input = -1

    def _want_to_write(self, wanted: bool) -> None:
        registered = self.input in self._selector.get_map()
        if wanted and not registered:
            self._selector.register(self.input, selectors.EVENT_WRITE)
        elif registered and not wanted:
            self._selector.unregister(self.input)

    def _reap(self) -> None:
        """Bury orphans: this is the first process, whose task it is."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        while (dead := os.waitid(os.P_ALL, 0, flags)) and dead.si_pid != self.process.pid:
            os.waitpid(dead.si_pid, 0)


def _detach(stream: IO[bytes] | None) -> int:
    assert stream is not None
    fd = os.dup(stream.fileno())
    stream.close()
    return fd


def run(plan: GuestPlan, wire: Wire) -> int:
    """Run the plan's command to its end. Return its exit status as a shell would."""
    # Python ignores these two, and the command would inherit that.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        session = _Session(plan, wire)
    except OSError as error:
        wire.send(Kind.ERROR, f"{plan['command'][0]}: {error.strerror}\n".encode())
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN
    return session.serve()
