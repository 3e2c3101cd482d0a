"""What is preloaded into the lab's kernel, on a process of this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.lab.compiler import compile_library

FITS = 77
SET_SHORTER = """
import ctypes, os, signal, sys
SETREGSET, GETREGSET, XSTATE = 0x4205, 0x4204, ctypes.c_void_p(0x202)
FITS = 77
LEGACY_AND_AVX = 832
class Buffer(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
libc = ctypes.CDLL(None, use_errno=True)
ptrace = libc.ptrace
ptrace.restype = ctypes.c_long
child = os.fork()
if child == 0:
    ptrace(0, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    os._exit(0)
os.waitpid(child, 0)
data = ctypes.create_string_buffer(1 << 16)
buffer = Buffer(ctypes.addressof(data), len(data))
assert ptrace(GETREGSET, child, XSTATE, ctypes.byref(buffer)) == 0
if buffer.length <= LEGACY_AND_AVX:
    os.kill(child, signal.SIGKILL)
    sys.exit(FITS)
buffer.length = LEGACY_AND_AVX
print(ptrace(SETREGSET, child, XSTATE, ctypes.byref(buffer)))
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


def set_shorter(environment: dict[str, str]) -> str:
    """What setting registers from a buffer that is too short returns, in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", SET_SHORTER],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == FITS:
        pytest.skip("this processor has no more state than fits")
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_registers_are_set_on_processors_with_more_state_than_the_kernel_knows(
    tmp_path: Path,
) -> None:
    library = tmp_path / "ptrace.so"
    compile_library(library, "kernel_compat", ("ptrace.c",))
    assert set_shorter({}) == "-1"
    assert set_shorter({"LD_PRELOAD": str(library)}) == "0"


LOST = """
import ctypes, signal
libc = ctypes.CDLL(None, use_errno=True)
class Spec(ctypes.Structure):
    _fields_ = [(name, ctypes.c_long) for name in ("every_s", "every_ns", "left_s", "left_ns")]
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
timer, left = ctypes.c_void_p(), Spec()
assert libc.timer_create(1, None, ctypes.byref(timer)) == 0
for seconds in (100, 0):
    assert libc.timer_settime(timer, 0, ctypes.byref(Spec(0, 0, seconds, 0)), None) == 0
    assert libc.timer_gettime(timer, ctypes.byref(left)) == 0
    assert (left.left_s > 0) == (seconds > 0)
    print(signal.SIGALRM in signal.sigpending())
"""


def test_a_timer_that_is_not_set_while_no_signal_waits_has_lost_one(tmp_path: Path) -> None:
    """The lab's kernel asks for it with SIGALRM blocked, as it is about to sleep."""
    library = tmp_path / "compat.so"
    compile_library(library, "kernel_compat", ("ptrace.c", "timer.c"))
    for preloaded, waits in (({}, "False\nFalse\n"), ({"LD_PRELOAD": library}, "False\nTrue\n")):
        done = subprocess.run(
            [sys.executable, "-c", LOST],
            env={**os.environ, **preloaded},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == waits
