"""`autotune guard`: what has to hold before, and what is put back after."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from autotune.errors import AutotuneError, RefusalError, StoppedError
from autotune.guard.loop import Hold, Window
from autotune.guard.progress import ACTIONS, under_way, wait_for_one
from autotune.guard.valve import FLOOR_KIB, Valve, files
from autotune.preflight import checks
from autotune.safety.guardian import guarded
from autotune.safety.journal import Journal
from autotune.safety.locks import lock
from autotune.safety.paths import journal_path
from autotune.system import sysfs
from autotune.system.array import Array, find_array

_PAUSE_S = 0.1


@dataclass(frozen=True)
class Summary:
    """One sync under guard. `judged` windows had requests enough for a p99; `over` of these were
    above the ceiling. `ended` says why it is over."""

    action: str
    seconds: float
    synced_bytes: int
    windows: int
    judged: int
    over: int
    ended: str


class Signals:
    """SIGINT, SIGTERM and SIGHUP only leave a mark: nothing is cut off in the middle."""

    def __init__(self) -> None:
        self.name = ""

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """Meanwhile they do."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._mark) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _mark(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name

    def pause(self, seconds: float) -> bool:
        """Wait so long; False as soon as there was a signal."""
        deadline = time.monotonic() + seconds
        while not self.name and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, _PAUSE_S))
        return not self.name


def refusal(array: Array) -> str | None:
    """Why this array cannot be guarded: a sentence, or None."""
    findings = (
        checks.unknown_driver(array),
        checks.not_redundant(array),
        checks.external_metadata(array),
        checks.no_uuid(array),
        checks.speeds_crossed(array),
        checks.fio_missing(),
        checks.not_root(array),
        _no_room(array),
    )
    return next((text for text in findings if text), None)


def _no_room(array: Array) -> str | None:
    limit = int(sysfs.value(array.md / "sync_speed_max"))
    if limit > FLOOR_KIB + 1:
        return None
    return (
        f"The sync_speed_max of {array.device} is {limit} KiB/s already, and a guard only ever "
        f"lowers it; raise it with `echo system > {array.md / 'sync_speed_max'}`."
    )


def guard(
    device: str,
    ceiling_ns: float,
    state_dir: Path,
    hear: Callable[[Window], None],
    finished: Callable[[Summary], None],
    notice: Callable[[str], None],
    wait: bool = False,
) -> bool:
    """Keep the foreground's p99 under a ceiling while a sync of the array lasts; with `wait`, for
    each sync, until a signal comes. False if no sync runs and none is waited for.

    What was set is put back after each sync. `finished` hears how each went. Raise UsageError if
    there is no such array, RefusalError if it cannot be guarded or another run of autotune works
    on it, StoppedError if it is stopped or somebody else sets what is moved here. With `wait` these
    are told to `notice`, and the next sync is waited for.
    """
    array = find_array(device)
    if text := refusal(array):
        raise RefusalError(text)
    signals = Signals()
    with signals.heeded():
        if not wait:
            if not under_way(array):
                return False
            finished(_one(array, ceiling_ns, state_dir, hear, notice, signals))
            return True
        told = ""
        while wait_for_one(array, signals.pause):
            try:
                finished(_one(array.now(), ceiling_ns, state_dir, hear, notice, signals))
            except (StoppedError, RefusalError) as error:
                # Somebody else has a hand in this sync: a run of autotune with checks, perhaps.
                if str(error) != told:
                    notice(told := str(error))
                while under_way(array) and signals.pause(_PAUSE_S):
                    pass
        return True


def _one(
    array: Array,
    ceiling_ns: float,
    state_dir: Path,
    hear: Callable[[Window], None],
    notice: Callable[[str], None],
    signals: Signals,
) -> Summary:
    """Guard the sync that is under way, to its end."""
    action, started = under_way(array) or array.sync_action, time.monotonic()
    path = journal_path(state_dir, array.uuid)
    with (
        lock(array, path),
        guarded(Journal.open(path, array.uuid, array.device, files(array)), notice) as guardian,
    ):

        def going() -> bool:
            if not guardian.alive:
                raise AutotuneError(
                    "Stopped: the guardian process was killed, and without it a kill of autotune "
                    "would leave settings behind."
                )
            return not signals.name

        try:
            hold = Hold(array, Valve(array, guardian.journal), ceiling_ns)
            over = hold.run(going, hear)
        except OSError:
            if array.md.is_dir():
                raise
            raise StoppedError(f"Stopped: {array.device} was stopped.") from None
    what = ACTIONS.get(action, action)
    return Summary(
        what,
        time.monotonic() - started,
        hold.done_bytes,
        hold.windows,
        hold.judged,
        hold.over,
        f"the {what} is over" if over else f"stopped by {signals.name}",
    )
