"""Keeping the bursts short of a sync of RAID 4, 5 or 6 that is held back.

At full speed the kernel enlarges the stripe cache, to ten times its size within minutes
(raid5_get_active_stripe), and keeps it. md's limit knows what is done, but not what has begun: so
what goes on between two looks at it is as much as the cache holds, and users wait behind that. In
the lab, at the same pace, their p99 was up to three times as long. To write the size that is set
once more makes the cache that small again (raid5_set_cache_size).
"""

import contextlib
import threading

from autotune.errors import AutotuneError
from autotune.system import sysfs
from autotune.system.array import PARITY, Array

EACH_S = 3.0
"""A sync that is held back enlarges it too, though slowly."""


class StripeCache:
    """Of one array; of other levels it does nothing."""

    def __init__(self, array: Array) -> None:
        # A reshape stops for good if the cache gets too small for it.
        has_one = array.level in PARITY and array.reshape_position == "none"
        self._file = array.md / "stripe_cache_size" if has_one else None
        self._due_s = 0.0
        self._writing: threading.Thread | None = None

    def shrink(self, now_s: float) -> None:
        """Drop what was added to it. To be called often, while the sync is held back."""
        busy = self._writing is not None and self._writing.is_alive()
        if self._file is None or busy or now_s < self._due_s:
            return
        self._due_s = now_s + EACH_S
        # It takes md's mutex, for which nothing may wait that moves the throttle.
        self._writing = threading.Thread(target=self._write_again, daemon=True)
        self._writing.start()

    def _write_again(self) -> None:
        assert self._file is not None
        with contextlib.suppress(AutotuneError, OSError):
            sysfs.write(self._file, sysfs.read(self._file))
