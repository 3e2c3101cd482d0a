"""A recovery or resync that is really under way, tuned as it runs.

It is read from /proc/mdstat and never frozen, paused, restarted or bounded: nothing here writes.
"""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Self

from autotune.knobs import Knob, unsafe_now
from autotune.measure.check import SHOWS_AFTER_S
from autotune.measure.sync_progress import Progress
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sync import REBUILDS, SPEEDS, ended

if TYPE_CHECKING:
    from autotune.measure.workload import Phase, Workload

WINDOW_S = 30.0
"""The kernel holds the mean speed of the last 27 to 30 s against sync_speed_max (md_do_sync:
SYNC_MARKS × SYNC_MARK_STEP). After a change the old speed still counts for that long: a sync that
was faster than its new limit stands still meanwhile. A check, which starts anew for each
measurement, has no such past."""
PAUSE_S = 0.2


def live_phases(workload: "Workload") -> "tuple[Phase, ...]":
    """What can be measured beside a real sync: a sync's rate and the latency under it, for at
    least one of the kernel's windows. The array is never idle, so nothing else can."""
    return tuple(
        phase.model_copy(
            update={
                "min_seconds": max(WINDOW_S, phase.min_seconds),
                "max_seconds": max(2 * WINDOW_S, phase.max_seconds),
            }
        )
        for phase in workload.phases
        if phase.check
    )


def live_knobs(array: Array, knobs: Iterable[Knob], phases: "Iterable[Phase]") -> tuple[Knob, ...]:
    """The knobs that can move what is measured and may be written while a sync runs."""
    pairs = [(p, f.quantity) for p in phases for f in p.figures()]
    return tuple(
        knob
        for knob in knobs
        if any(knob.moves(phase, quantity) for phase, quantity in pairs)
        and not any(unsafe_now(path) for path in knob.paths(array))
    )


class Recovery:
    """The sync under way on an array; enter it for each phase, as a `Check`.

    `watch` is called at least once a second while the kernel forgets the speed of before.
    """

    def __init__(self, array: Array, watch: Callable[[], None]) -> None:
        self._array = array
        self._watch = watch
        self._speeds = self._read_speeds()
        self._progress = Progress(array)

    def __enter__(self) -> Self:
        speeds = self._read_speeds()
        if speeds != self._speeds:
            deadline = time.monotonic() + WINDOW_S
            while time.monotonic() < deadline:
                self._watch()
                time.sleep(PAUSE_S)
            self._speeds = speeds
        self._progress = Progress(self._array)
        self._progress.look()
        return self

    def done_bytes(self) -> int:
        """How much of each member was synced since this phase began.

        Raise SyncEndedError if the sync is over, StoppedError if it was interrupted.
        """
        done_kib = self._progress.look()
        action = sysfs.read_or(self._array.md / "sync_action", "idle")
        # Between two members, or at its very end, a sync shows no position.
        if not self._progress.getting_on and action not in REBUILDS:
            # Interrupted, as where the new disk fails, it is idle too; the watch knows that.
            time.sleep(SHOWS_AFTER_S)
            self._watch()
            raise ended(self._array)
        return done_kib * 1024

    def _read_speeds(self) -> tuple[str, ...]:
        return tuple(sysfs.read_or(self._array.md / name, "") for name in SPEEDS)

    def __exit__(self, *_: object) -> None:
        """The sync goes on."""
