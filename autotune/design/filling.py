"""Random bytes where the slices will be: flash answers at once for what was never written."""

import mmap
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from autotune.design.blank_disks import Disk
from autotune.errors import MeasurementError

PART_BYTES = 8 << 20
"""Large, so that a hard disk without a write cache loses few turns."""
LOOK_S = 0.3


def fill(
    disks: Sequence[Disk],
    offset_bytes: int,
    size_bytes: int,
    look: Callable[[], None],
    progress: Callable[[float], None],
) -> None:
    """Write so many bytes of each disk, all disks at once. `look` is called meanwhile, and raises
    to end it; `progress` hears the share that is done.

    Raise MeasurementError if a disk does not take it.
    """
    over = threading.Event()
    done = [0] * len(disks)

    def work(index: int) -> None:
        with mmap.mmap(-1, PART_BYTES) as part:
            part.write(os.urandom(PART_BYTES))
            with disks[index].held() as descriptor:
                while done[index] < size_bytes and not over.is_set():
                    # One that is not released would hide the error of the write.
                    with memoryview(part)[: size_bytes - done[index]] as left:
                        done[index] += os.pwritev(descriptor, [left], offset_bytes + done[index])
                os.fsync(descriptor)

    with ThreadPoolExecutor(len(disks)) as pool:
        jobs = [pool.submit(work, index) for index in range(len(disks))]
        try:
            while not all(job.done() for job in jobs):
                look()
                if any(job.done() and job.exception() for job in jobs):
                    break
                progress(sum(done) / (size_bytes * len(disks)))
                time.sleep(LOOK_S)
        finally:
            over.set()
    for disk, job in zip(disks, jobs, strict=True):
        error = job.exception()
        if isinstance(error, OSError):
            raise MeasurementError(f"{disk.device} cannot be written: {error.strerror}.") from None
        if error is not None:
            raise error
