"""What a guard writes for Prometheus, if the configuration names a file."""

import math
from collections.abc import Callable
from pathlib import Path

from autotune.guard.window import Window
from autotune.quantities import KIB, NS_PER_S
from autotune.service.metrics_files import GUARD
from autotune.system.array import Array
from autotune.told_once import ToldOnce


class GuardMetricsFile:
    """Writes the metrics of one array's guard. A file that cannot be written is told of once, tried
    again at the next window, and keeps no guard from its work."""

    def __init__(
        self,
        file: Path | None,
        array: Array,
        ceiling_ns: float,
        notice: Callable[[str], None],
    ) -> None:
        self._file = file
        self._array, self._ceiling_s, self._once = array, ceiling_ns / NS_PER_S, ToldOnce(notice)
        self._released = self._out_of_reach = self._has_written = False

    def window(self, window: Window) -> None:
        """A sync is under way."""
        self._released, self._out_of_reach = False, window.out_of_reach
        self._write(window)

    def over(self, released: bool = False) -> None:
        """It has ended, or is not guarded any more; once it is `released` because the ceiling is
        out of reach, that is told until a sync is guarded again."""
        self._released |= released and self._out_of_reach
        self._write(None)

    def end(self) -> None:
        """This guard is over: one that was refused says nothing of that which is at work."""
        if self._has_written:
            self.over()

    def unguarded(self) -> None:
        """None is under way any more, or it goes on without a guard."""
        self._released = False
        self._write(None)

    def _write(self, window: Window | None) -> None:
        if self._file is None:
            return
        self._has_written = True
        # Loads prometheus_client, which a guard without metrics does not need.
        from autotune.service.metrics import write_gauges  # noqa: PLC0415

        gauges = {
            "active": ("1 while a sync is held to the ceiling.", float(window is not None)),
            "p99_ceiling_seconds": (
                "The ceiling of that p99.",
                self._ceiling_s if math.isfinite(self._ceiling_s) else None,
            ),
            "ceiling_out_of_reach": (
                "1 if the slowest sync does not hold the ceiling.",
                float(window.out_of_reach if window else self._released),
            ),
            "impossible": (
                "1 if the deadline cannot be met, or not together with the ceiling.",
                float(window.impossible if window else False),
            ),
            "sync_bytes_per_second": (
                "How fast each member is synced.",
                window.sync_bytes_per_s if window else 0.0,
            ),
            **(_of_a_window(window) if window else {}),
        }
        action = window.action if window else ""
        with self._once.attempt():
            write_gauges(self._file, GUARD, self._array, gauges, action)


def _of_a_window(window: Window) -> dict[str, tuple[str, float | None]]:
    p99_s = window.p99_ns / NS_PER_S if window.p99_ns is not None else None
    held = window.sync_speed_max_kib * KIB if window.source != "none" else None
    return {
        "p99_seconds": ("The foreground's p99 of the last half minute.", p99_s),
        "held_bytes_per_second": ("What each member's sync is held to.", held),
        "done_ratio": ("How much of the sync is done, 0 to 1.", window.share),
        "left_seconds": ("The time left at the speeds of the last minute.", window.left_s),
        "left_low_seconds": ("The time left if all users leave.", window.left_low_s),
        "left_high_seconds": ("The time left if all users stay.", window.left_high_s),
        "finish_timestamp_seconds": ("When the sync is to be over.", window.finish_s),
    }
