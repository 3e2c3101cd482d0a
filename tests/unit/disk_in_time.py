"""The simulated disks as a library, and a virtual time to run them in."""

import ctypes
from pathlib import Path
from typing import NamedTuple

from autotune.lab.disks import MODEL_SOURCES, compile_model

NEVER = 2**64 - 1
FIELDS = (
    *(
        "rotating",
        "size",
        "rate",
        "inner_rate",
        "queue",
        "seek_ns",
        "rotation_ns",
        "lookahead",
        "cache",
    ),
    *("channels", "read_ns", "write_ns", "burst", "sustained"),
)


class Completion(ctypes.Structure):
    """`struct disk_completion`."""

    _fields_ = (("id", ctypes.c_uint64), ("time", ctypes.c_uint64))


class Request(NamedTuple):
    """One request of a stream, numbered in its order."""

    op: int
    offset: int
    bytes: int


class Disk:
    """A simulated disk and the virtual time on it."""

    def __init__(self, library: ctypes.CDLL, spec: dict[str, int]) -> None:
        self._library = library
        values = (ctypes.c_uint64 * len(FIELDS))(*(spec.get(field, 0) for field in FIELDS))
        self._disk = library.disk_new(values)
        self._ids = 0
        self.now = 0

    def submit(self, op: int, offset: int, size: int) -> int:
        self._ids += 1
        assert self._library.disk_submit(self._disk, self._ids, op, offset, size, self.now)
        return self._ids

    def wait(self) -> int:
        """Let time pass until a request completes. Return its id."""
        taken = Completion()
        while not self._library.disk_take(self._disk, self.now, ctypes.byref(taken)):
            wake = self._library.disk_wake(self._disk)
            assert wake != NEVER, "the disk has forgotten a request"
            assert wake > self.now, "the disk does not get on"
            self.now = wake
        return int(taken.id)

    def do(self, op: int, offset: int, size: int) -> int:
        """Make one request on an otherwise idle disk. Return how long it took."""
        began = self.now
        request = self.submit(op, offset, size)
        assert self.wait() == request
        return self.now - began

    def stream(self, requests: list[Request], depth: int) -> int:
        """Keep `depth` requests going until all are done. Return how long that took."""
        began = self.now
        for number, request in enumerate(requests):
            if number >= depth:
                self.wait()
            self.submit(*request)
        for _ in range(min(depth, len(requests))):
            self.wait()
        return self.now - began

    def slow_down(self, factor: float) -> None:
        self._library.disk_slow_down(self._disk, int(factor * 1000), self.now)


def load_model(folder: Path) -> ctypes.CDLL:
    """The disk model, compiled into a library in `folder`."""
    path = folder / "model.so"
    compile_model(path, MODEL_SOURCES)
    library = ctypes.CDLL(str(path))
    library.disk_new.restype = ctypes.c_void_p
    library.disk_wake.restype = ctypes.c_uint64
    library.disk_take.restype = library.disk_submit.restype = ctypes.c_bool
    library.disk_new.argtypes = [ctypes.c_void_p]
    library.disk_wake.argtypes = library.disk_free.argtypes = [ctypes.c_void_p]
    library.disk_take.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
    library.disk_slow_down.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64]
    library.disk_submit.argtypes = [ctypes.c_void_p, *([ctypes.c_uint64] * 5)]
    library.disk_submit.argtypes[2] = ctypes.c_int
    return library
