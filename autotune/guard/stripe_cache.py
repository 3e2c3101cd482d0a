"""Keeping the bursts short of a sync of RAID 4, 5 or 6 that is held back.

At full speed the kernel enlarges the stripe cache, to ten times its size within minutes
(raid5_get_active_stripe), and keeps it. md's limit knows what is done, but not what has begun: so
what goes on between two looks at it is as much as the cache holds, and users wait behind that. In
the lab, at the same pace, their p99 was up to three times as long. To write the size that is set
once more makes the cache that small again (raid5_set_cache_size).
"""

import contextlib
import threading
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.journal import Journal
from autotune.system import sysfs
from autotune.system.array import PARITY, Array

EACH_S = 3.0
"""A sync that is held back enlarges it too, though slowly."""


def files(array: Array) -> list[Path]:
    """The file that is written, if there is one. A reshape stops for good if the cache gets too
    small for it."""
    has_one = array.level in PARITY and array.reshape_position == "none"
    path = array.md / "stripe_cache_size"
    return [path] if has_one and path.exists() else []


class StripeCache:
    """Of one array; of other levels it does nothing. The journal knows its size."""

    def __init__(self, array: Array, journal: Journal) -> None:
        self._journal, self._sizes = journal, dict[Path, str]()
        for path in files(array):
            self._sizes[path] = journal.record.originals[str(path)]
            journal.writing(path, self._sizes[path])
        self._due_s = 0.0
        self._writing: threading.Thread | None = None

    def shrink(self, now_s: float) -> None:
        """Drop what was added to it. To be called often, while the sync is held back."""
        busy = self._writing is not None and self._writing.is_alive()
        if not self._sizes or busy or now_s < self._due_s:
            return
        self._due_s = now_s + EACH_S
        # It takes md's mutex, for which nothing may wait that moves the throttle.
        self._writing = threading.Thread(target=self._write_again, daemon=True)
        self._writing.start()

    def _write_again(self) -> None:
        for path, size in self._sizes.items():
            with contextlib.suppress(AutotuneError, OSError):
                # What somebody else has set meanwhile is theirs.
                if sysfs.original(path) == size:
                    self._journal.store(path, size)
