"""The first bytes of an array that was made on slices full of random bytes.

The kernel looks there for partition tables, and knows some by one byte alone: Acorn's by a sum of
8 bits (block/partitions/acorn.c), so that one array in some hundred would have partitions that
nobody made.
"""

import errno
import fcntl
import os
import time

from autotune.errors import MeasurementError

HEAD_BYTES = 64 << 10
"""The last place where the kernel looks for a table is sector 31 (block/partitions/ultrix.c), but
for GPT's copy at the end, which has a checksum."""
READ_PARTITIONS = 0x125F
"""BLKRRPART of the kernel's include/uapi/linux/fs.h."""
PATIENCE_S = 20.0
"""udev may have it open for moments."""
LOOK_S = 0.1


def clear(device: str) -> None:
    """Write zeros to the first 64 KiB of an array that was made just now, and have the kernel look
    for partitions again.

    Raise MeasurementError if it cannot be written, or somebody uses it.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            descriptor = os.open(device, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
            try:
                os.pwrite(descriptor, bytes(HEAD_BYTES), 0)
                os.fsync(descriptor)
                fcntl.ioctl(descriptor, READ_PARTITIONS)
            finally:
                os.close(descriptor)
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline:
                raise MeasurementError(
                    f"The first bytes of {device} cannot be cleared: {error.strerror}."
                ) from None
        time.sleep(LOOK_S)
