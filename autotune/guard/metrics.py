"""What a guard writes for Prometheus, if the configuration names a file."""

from collections.abc import Callable
from pathlib import Path

from autotune.guard.window import Window
from autotune.quantities import KIB, NS_PER_S
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
        """It has ended, or is not guarded any more; once it is `released` because the
        ceiling is out of reach, that is told until a sync is guarded again."""
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
        from autotune.service.metrics import GuardMetrics, write_guard_metrics  # noqa: PLC0415

        device, uuid = self._array.device, self._array.uuid
        if window is None:
            seen = GuardMetrics(device, uuid, self._ceiling_s, False, out_of_reach=self._released)
        else:
            seen = GuardMetrics(
                device,
                uuid,
                self._ceiling_s,
                True,
                window.p99_ns / NS_PER_S if window.p99_ns is not None else None,
                window.sync_bytes_per_s,
                window.out_of_reach,
                (window.left_s, window.left_low_s, window.left_high_s),
                window.finish_s,
                window.impossible,
                window.action,
                window.share,
                window.sync_speed_max_kib * KIB if window.source != "none" else None,
            )
        with self._once.attempt():
            write_guard_metrics(self._file, seen)
