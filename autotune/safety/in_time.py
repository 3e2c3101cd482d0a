"""What may wait for a disk that does not answer, and is not worth waiting for. Light."""

import contextlib
import json
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path


def in_time(what: Callable[[], None], seconds: float) -> bool:
    """Have it done beside this, in a thread, and wait for so long: whether it was done. What it
    raises within that time is raised; what comes later is heard by nobody. Where no thread can be
    had, it is done here, however long that takes."""
    failure: list[Exception] = []

    def work() -> None:
        try:
            what()
        except Exception as error:
            failure.append(error)

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()
    except RuntimeError:
        work()
    else:
        thread.join(seconds)
        if thread.is_alive():
            return False
    if failure:
        raise failure[0]
    return True


def answer_in_time(what: Callable[[], list[str]], seconds: float) -> list[str] | None:
    """What it returns, asked in a process of its own; None if that takes longer, or fails. Unlike a
    thread, it does not keep this process from ending while it hangs."""
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            # Whoever reads what we print, or waits for a lock, does not wait for this.
            for number in [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]:
                if number != writes:
                    # The one that the list was read by is closed already.
                    with contextlib.suppress(OSError):
                        os.close(number)
            with os.fdopen(writes, "w") as file:
                json.dump(what(), file)
        finally:
            os._exit(0)
    os.close(writes)
    said, until_s = b"", time.monotonic() + seconds
    with os.fdopen(reads, "rb", 0) as file:
        while select.select([file], [], [], max(0.0, until_s - time.monotonic()))[0]:
            if data := file.read(1 << 16):
                said += data
                continue
            os.waitpid(child, 0)
            return [str(each) for each in json.loads(said)] if said else None
    os.kill(child, signal.SIGKILL)
    return None
