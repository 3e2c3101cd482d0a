"""Work on a filesystem in a process of its own, which can be left alone if it hangs. Light."""

import contextlib
import errno
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

WORK = Path(__file__).with_name("scratch_work.py")
KILL_TIMEOUT_S = 3.0
"""What is on its way to slow disks is waited for, SIGKILL or not."""
LOOK_S = 0.5


class HangingError(OSError):
    """A process hangs in the kernel, where no signal reaches it."""


def _start(words: tuple[str, ...], folder: str, dies_with_us: bool) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        (
            *(("setpriv", "--pdeathsig", "KILL") if dies_with_us else ()),
            *(sys.executable, "-I", "-S", str(WORK), *words),
        ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Ctrl-C is for autotune to handle.
        start_new_session=True,
    )


def fill(folder: str, words: tuple[str, ...], on_progress: Callable[[int], None]) -> None:
    """Make and fill a scratch file. `on_progress` is called often, with the bytes written so far;
    what it raises ends the work.

    OSError if it fails, HangingError if it cannot be ended.
    """
    process = _start(("fill", *words), folder, dies_with_us=True)
    assert process.stdout is not None
    done, text, error = 0, b"", 0
    try:
        while True:
            if select.select([process.stdout], [], [], LOOK_S)[0]:
                data = os.read(process.stdout.fileno(), 1 << 16)
                if not data:
                    break
                *lines, text = (text + data).split(b"\n")
                error = _error(lines)
                if lines and not error:
                    done = int(lines[-1])
            on_progress(done)
        code = process.wait()
    except BaseException as stop:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.kill()
            process.wait(KILL_TIMEOUT_S)
        if process.poll() is None:
            raise HangingError(errno.ETIMEDOUT, "a write does not end") from stop
        raise
    finally:
        process.stdout.close()
    if error or code:
        raise OSError(error, os.strerror(error) if error else f"exit status {code}")


def _error(lines: list[bytes]) -> int:
    said = lines[-1].split() if lines else []
    return int(said[1]) if said[:1] == [b"error"] else 0


def remove(folder: str, words: tuple[str, ...], timeout_s: float) -> None:
    """Remove a scratch folder with its file. OSError if that fails.

    HangingError if it takes too long; it is then left to end by itself, as soon as it can.
    """
    process = _start(("remove", *words), folder, dies_with_us=False)
    deadline = time.monotonic() + timeout_s
    assert process.stdout is not None
    with process.stdout:
        try:
            code = process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise HangingError(errno.ETIMEDOUT, "the filesystem does not answer") from None
        lines = process.stdout.read().splitlines()
    if error := _error(lines):
        raise OSError(error, os.strerror(error))
    if code or b"removed" not in lines:
        # The program itself may be gone, as while its package is upgraded.
        raise OSError(0, f"the process that removes it has not done so (exit status {code})")
