"""One part of a check: under the guard, until it is over or something asks for its end."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autotune.checking import obstacles
from autotune.checking.bounded_check import BoundedCheck
from autotune.checking.options import OVERTAKEN
from autotune.checking.record import CheckRecord, Part
from autotune.errors import AutotuneError, StoppedError
from autotune.guard import announce, stripe_cache
from autotune.guard.goals import Promise
from autotune.guard.loop import ENOUGH, GuardLoop
from autotune.guard.preconditions import no_room, put_back_leftovers, wake_udev
from autotune.guard.throttle import Throttle, files
from autotune.guard.window import Window
from autotune.safety.deferred_restore import settle
from autotune.safety.guardian import Guardian, guarded
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.sync_forecast import stored as forecasts
from autotune.system.array import Array
from autotune.system.bad_blocks import bad_sectors
from autotune.system.neighbours import neighbour_syncing
from autotune.system.replacement import replacement_waits

LOOK_S = 1.0
"""Between two looks at what may ask for the end."""
WARM_LOOK_S = 30.0
STORE_S = 30.0
REST_S = 20.0
"""How long it is waited for that the check comes to its bound; what was read beyond
`sync_completed` is read again otherwise."""
TERMINATED_REST_S = 5.0
"""The same after SIGTERM: who stops a container kills it ten seconds after that, and the guardian
with it."""
CHECK = "check"
DONE = "all is read"


@dataclass(frozen=True)
class PartOptions:
    """How a part is to be done. `stop` says why it has to end by now ("" if it has not), and for
    how many seconds it may still come to its bound. `keep` is called with the record as it is by
    then, now and then. `overtaken`: whether another command has checked the array since the record
    was read. `begins` is called once nothing is in the way any more."""

    state_dir: Path
    promise: Promise
    least_kib: float
    hottest_c: int
    stop: Callable[[], tuple[str, float]]
    on_window: Callable[[Window], None]
    notice: Callable[[str], None]
    unheld: Callable[[str], None]
    news: announce.News
    keep: Callable[[CheckRecord], None]
    overtaken: Callable[[], bool]
    begins: Callable[[], None]


@dataclass
class Going:
    """Asked all the while whether a part goes on; keeps its record."""

    array: Array
    bounded_check: BoundedCheck
    options: PartOptions
    record: CheckRecord
    began: datetime
    began_s: float
    ended: str = ""
    _looked_s: float = 0.0
    _warm_s: float = 0.0
    _kept_s: float = 0.0
    _rest_by_s: float = 0.0

    def __post_init__(self) -> None:
        self._kept_s = self.began_s

    def __call__(self) -> bool:
        now = time.monotonic()
        self.bounded_check.look(now)
        if now - self._looked_s >= LOOK_S and not self.ended:
            self._looked_s = now
            self.ended, rest_s = self._reason(now)
            if self.ended:
                self.bounded_check.hold()
                self._rest_by_s = now + rest_s
        elif self.ended:
            why, rest_s = self.options.stop()
            if why:
                self._rest_by_s = min(self._rest_by_s, now + rest_s)
        if now - self._kept_s >= STORE_S:
            self._kept_s = now
            self.options.keep(self.updated())
        if self.bounded_check.over:
            return False
        return not (self.ended and (self.bounded_check.at_rest or now >= self._rest_by_s))

    def _reason(self, now: float) -> tuple[str, float]:
        """What ends the part, and for how long it may still come to its bound."""
        why, rest_s = self.options.stop()
        if why:
            return why, rest_s
        if first := neighbour_syncing(self.array, pending=False) or replacement_waits(self.array):
            return first, 0.0
        if now - self._warm_s >= WARM_LOOK_S:
            self._warm_s = now
            return obstacles.too_warm(self.array, self.options.hottest_c), REST_S
        return "", 0.0

    def window(self, window: Window) -> None:
        """Take in how the check disturbs."""
        if window.p99_ns is not None and window.samples >= ENOUGH:
            ceiling_ns = self.options.promise.ceiling_ns
            felt = self.record.felt.seen(window.p99_ns, window.p99_ns > ceiling_ns)
            limit = ceiling_ns if math.isfinite(ceiling_ns) else None
            self.record = self.record.changed(felt=felt, ceiling_ns=limit)
        self.options.on_window(window)
        for text in self.options.news.of(window):
            self.options.notice(text)

    def updated(self) -> CheckRecord:
        """The record, with this part as far as it is."""
        ended = DONE if self.bounded_check.complete else self.ended
        part = Part(
            start=self.bounded_check.start,
            end=self.bounded_check.position,
            began=self.began,
            seconds=round(time.monotonic() - self.began_s, 1),
            mismatches=self.bounded_check.mismatches,
            **({"ended": ended} if ended else {}),
        )
        unread = max(self.record.unread, sum(bad_sectors(self.array).values()))
        return self.record.changed(size=self.bounded_check.size, unread=unread).with_part(part)


def run(array: Array, record: CheckRecord, options: PartOptions) -> tuple[CheckRecord, str]:
    """Check on from where the record is; return it as it is then, and why the part ended: "" if
    all is read, or the check was ended from outside.

    All limits are as they were found then. Raise RefusalError if another run of autotune works on
    the array, StoppedError if it was stopped, its limit leaves no room, or somebody else sets what
    is moved here.
    """
    path = journal_path(options.state_dir, array.uuid)
    going: Going | None = None
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(_wake_for_a_new_member, array, options.notice)
            stack.enter_context(lock(array, path))
            if options.overtaken():
                return record, OVERTAKEN
            put_back_leftovers(array, path, options.notice)
            if text := no_room(array):
                raise StoppedError(text)
            settle(path, array.root)
            options.begins()
            bounds = [array.md / "sync_min", array.md / "sync_max"]
            written = [*files(array), *stripe_cache.files(array), *bounds]
            journal = new_journal(path, array.uuid, array.device, written)
            guardian = stack.enter_context(guarded(journal, options.notice))
            bounded_check = BoundedCheck(array, journal, record.position, record.size)
            going = Going(
                array, bounded_check, options, record, datetime.now(UTC), time.monotonic()
            )
            stack.enter_context(bounded_check)
            _hold(array, guardian, going)
    except OSError:
        if array.md.is_dir():
            raise
        raise StoppedError(f"Stopped: {array.device} was stopped.") from None
    finally:
        # Whatever ended it, what was read was read.
        if going is not None:
            record = going.updated()
            if going.bounded_check.complete:
                record = record.changed(ended=datetime.now(UTC))
            options.keep(record)
    return record, going.ended


def _wake_for_a_new_member(array: Array, notice: Callable[[str], None]) -> None:
    if array.has_gained_a_member:
        wake_udev(array, notice)


def _hold(array: Array, guardian: Guardian, going: Going) -> None:
    options = going.options
    known = forecasts.newest(array, options.state_dir)
    curve = announce.curve(array, CHECK, known) if known else None
    throttle = Throttle(array, guardian.journal)
    # It was looked at before the check began.
    checked = dataclasses.replace(array, sync_action=CHECK)
    loop = GuardLoop(checked, throttle, options.promise, options.least_kib, curve)

    def goes() -> bool:
        if why := guardian.lost:
            raise AutotuneError(
                f"Stopped: {why}, and without it a kill of autotune would leave settings behind."
            )
        return going()

    def on_window(window: Window) -> None:
        going.window(window)
        if window.out_of_reach:
            options.unheld(
                announce.out_of_reach(array.device, CHECK, options.promise, window, loop)
            )

    loop.run(goes, on_window)
    going.ended = going.ended or loop.behind
