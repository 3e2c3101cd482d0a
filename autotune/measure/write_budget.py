"""How much a run writes to its array. SSDs wear, so there may be a budget of it."""

import math
from collections.abc import Callable, Iterable

from autotune.errors import RefusalError, StoppedError
from autotune.measure.fio_command import Job
from autotune.measure.series import LOAD
from autotune.measure.workload import Load
from autotune.quantities import show_bytes

SURELY = 6
"""Standard deviations."""


class Written:
    """What a run has written in all, `total` bytes, of the `budget` of bytes if it has one.

    `store` keeps the total, so that a run that goes on after a cut counts on from there.
    """

    def __init__(
        self,
        budget: int | None = None,
        total: int = 0,
        store: Callable[[int], None] = lambda _total: None,
    ) -> None:
        self.budget = budget
        self.total = total
        self._store = store

    @property
    def left(self) -> int | None:
        """The bytes that may still be written; None without a budget."""
        return None if self.budget is None else max(0, self.budget - self.total)

    def expect(self, count: int) -> None:
        """Take note that so many bytes may soon be written: they count if nobody lives to count."""
        self._store(self.total + count)

    def add(self, count: int, store: bool = True) -> None:
        """Count what was written since the last call. Without `store`, it is stored by the next
        call, or by `keep`."""
        self.total += count
        if store:
            self.keep()

    def keep(self) -> None:
        """Store the total."""
        self._store(self.total)

    def check_scratch(self, size: int) -> None:
        """Raise RefusalError if the budget does not even allow to fill a scratch file of `size`
        bytes."""
        if self.budget is None or self.left is None or self.left > size:
            return
        before = f", of which {show_bytes(self.total)} are used," if self.total else ""
        raise RefusalError(
            f"The write budget of {show_bytes(self.budget)}{before} leaves nothing to measure with "
            f"after the scratch file of {show_bytes(size)} is filled; allow more (--write-budget)."
        )

    def used_up(self) -> StoppedError:
        """What to raise when the next write could pass the budget."""
        return StoppedError(
            f"Stopped: {show_bytes(self.total)} of the write budget of "
            f"{show_bytes(self.budget or 0)} are written and the phase needs more than what is "
            "left; go on with --resume and a larger --write-budget."
        )


def shares(jobs: Iterable[Job], limit: int, seconds: float) -> dict[str, int]:
    """The bytes that each process of a job that writes may move, read and written, so that all
    jobs together write no more than `limit`. A probe gets what its users may ask for in `seconds`,
    or half; 0 if there is no room for a single request of each."""
    writers = sorted((job for job in jobs if job.does.writes), key=lambda j: j.name == LOAD)
    found = {}
    for job in writers:
        does, block = job.does, job.does.block_kib * 1024
        if isinstance(does, Load):
            most = limit
            written_share = 1 - does.read_percent / 100 if does.rw == "randrw" else 1.0
        else:
            written_share, mean = 1.0, does.each_iops * seconds
            asked = job.processes * math.ceil(mean + SURELY * math.sqrt(mean)) * block
            most = min(asked, limit // 2 if len(writers) > 1 else limit)
        limit -= most
        found[job.name] = _requests(most // job.processes // block, written_share) * block
    return found


def _requests(writes: int, written_share: float) -> int:
    """How many requests, of which each writes with a probability, make so many writes at most:
    the mean stays `SURELY` below."""
    if written_share >= 1:
        return writes
    return (
        max(0, int((writes - SURELY * math.sqrt(writes)) / written_share)) if written_share else 0
    )
