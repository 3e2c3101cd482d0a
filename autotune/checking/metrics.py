"""What a check writes for Prometheus, if the configuration names a file."""

from collections.abc import Callable
from pathlib import Path

from autotune.checking.stored import load
from autotune.quantities import NS_PER_S
from autotune.service.metrics_files import CHECK
from autotune.system.array import Array
from autotune.told_once import ToldOnce


class CheckMetricsFile:
    """Writes the metrics of an array's checks. A file that cannot be written is told of once, tried
    again, and keeps no check from its work."""

    def __init__(self, file: Path | None, array: Array, notice: Callable[[str], None]) -> None:
        self._file, self._array, self._once = file, array, ToldOnce(notice)
        self._has_written = False

    def end(self, path: Path) -> None:
        """This check is over, or pauses: one that was refused says nothing of that at work."""
        if self._has_written:
            self.write(path, active=False)

    def write(
        self, path: Path, active: bool, share: float | None = None, p99_ns: float | None = None
    ) -> None:
        """`path`: where the checks are stored; `share`: how far the newest one is by now, if that
        is not there yet."""
        if self._file is None:
            return
        self._has_written = True
        # Loads prometheus_client, which a check without metrics does not need.
        from autotune.service.metrics import write_gauges  # noqa: PLC0415

        with self._once.attempt():
            history = load(path)
            if not history.checks:
                return
            newest, whole = history.checks[-1], history.complete
            # As long as re-tuning leaves the array alone for them (`check.md`).
            differing = float(history.differing.mismatches if history.differing else 0)
            over_s = whole.ended.timestamp() if whole is not None and whole.ended else None
            gauges = {
                "active": ("1 while a part of a check is under way.", float(active)),
                "progress_ratio": (
                    "How much of the newest check is done, 0 to 1.",
                    newest.share if share is None else share,
                ),
                "mismatch_sectors": ("What differs, by the newest check.", differing),
                "complete_timestamp_seconds": ("When the newest whole check was over.", over_s),
                "p99_seconds": (
                    "The foreground's p99 of the last half minute.",
                    p99_ns / NS_PER_S if p99_ns is not None else None,
                ),
            }
            write_gauges(self._file, CHECK, self._array, gauges)
