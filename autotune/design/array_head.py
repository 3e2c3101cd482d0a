"""The first bytes of an array that was made on slices full of random bytes.

The kernel looks there for partition tables, and knows some by one byte alone: Acorn's by a sum of
8 bits (block/partitions/acorn.c), so that one array in some hundred would have partitions that
nobody made.
"""

import errno
import fcntl
import os
import time
from pathlib import Path

from autotune.errors import MeasurementError
from autotune.system.array import read_array
from autotune.system.signature import signature

HEAD_BYTES = 64 << 10
"""The last place where the kernel looks for a table is sector 31 (block/partitions/ultrix.c), but
for GPT's copy at the end, which has a checksum."""
READ_PARTITIONS = 0x125F
"""BLKRRPART of the kernel's include/uapi/linux/fs.h."""
PATIENCE_S = 20.0
"""udev may have it open for moments."""
LOOK_S = 0.1


def clear(device: str, uuid: str) -> None:
    """Write zeros to the first 64 KiB of an array that was made just now, and have the kernel look
    for partitions again. `uuid`: the array's, in 32 hex digits.

    Raise MeasurementError if it cannot be written, or somebody uses it or has done so by now.
    """
    deadline, was_used = time.monotonic() + PATIENCE_S, False
    while True:
        try:
            _clear(device, uuid, was_used)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise _cannot(device, error.strerror or str(error)) from None
            was_used = True
        time.sleep(LOOK_S)


def _clear(device: str, uuid: str, was_used: bool) -> None:
    descriptor = os.open(device, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
    try:
        if read_array(Path(device).name).uuid != uuid:
            raise _cannot(device, "it is another array by now")
        # Before anybody used it, what looks like a signature is a whim of random bytes.
        if was_used and (content := signature(device)):
            raise _cannot(device, content)
        os.pwrite(descriptor, bytes(HEAD_BYTES), 0)
        os.fsync(descriptor)
        fcntl.ioctl(descriptor, READ_PARTITIONS)
    finally:
        os.close(descriptor)


def _cannot(device: str, why: str) -> MeasurementError:
    return MeasurementError(f"The first bytes of {device} cannot be cleared: {why}.")
