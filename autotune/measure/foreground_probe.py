"""A light probe, where the kernel's own counters cannot tell how slow the foreground is."""

from pathlib import Path
from typing import Self

from autotune.errors import MeasurementError
from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.fio_output import Counters
from autotune.measure.phase import SILENCE_S
from autotune.measure.workload import Probe as Requests
from autotune.system.array import Array, Media

RATE_IOPS = {Media.HDD: 20, Media.SSD: 100, Media.NVME: 100}
"""Small random reads all over the array: about a twentieth of what four hard disks can do."""
_NAME = "probe"
_FOREVER_S = 10 * 365 * 86_400.0
_AT_ONCE_S = 0.001


class ForegroundProbe:
    """fio's reads at a low fixed rate; a context manager."""

    def __init__(self, array: Array, rate_iops: int | None = None) -> None:
        target = Target(Path(array.device), array.size_bytes)
        rate = rate_iops if rate_iops is not None else RATE_IOPS[array.media]
        job = Job(_NAME, Requests(rate_iops=rate), target)
        self._fio = Fio([job], _FOREVER_S, seed=0)
        self._before: Counters | None = None

    def __enter__(self) -> Self:
        self._fio.__enter__()
        return self

    def look(self) -> Counters | None:
        """What it has read since it last said so, about once a second, else None.

        Raise MeasurementError if fio ends or falls silent.
        """
        counters = self._fio.poll(_AT_ONCE_S)
        if counters is None:
            if self._fio.silent_s > SILENCE_S:
                raise MeasurementError(
                    f"fio has said nothing for {SILENCE_S:.0f} s; the array may be stuck."
                )
            return None
        latest, before = counters[_NAME], self._before
        self._before = latest
        return latest.since(before) if before is not None else None

    def __exit__(self, *_: object) -> None:
        self._fio.__exit__()
