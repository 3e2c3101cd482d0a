"""A check of an array from its start, or from where it stopped: part by part, to its end or until
it has to stop."""

import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime

from autotune.background import Background
from autotune.checking import obstacles, part, stored
from autotune.checking.options import (
    ASKED_ANEW,
    AT_ONCE,
    OVERTAKEN,
    REPLACED,
    STOPPING,
    UNTOLD,
    WINDOW_CLOSED,
    WINDOW_SHUT,
    CheckOptions,
)
from autotune.checking.record import CheckHistory, CheckRecord
from autotune.errors import AutotuneError, RefusalError, StoppedError
from autotune.guard import announce
from autotune.guard.goals import Promise
from autotune.guard.preconditions import put_back_leftovers
from autotune.preflight import checks, syncs
from autotune.preflight.environment import place
from autotune.quantities import show_share
from autotune.safety.locks import is_locked, lock
from autotune.safety.paths import journal_path
from autotune.safety.signals import Signals
from autotune.sync_forecast import stored as forecasts
from autotune.system.array import Array, find_array
from autotune.system.sync import REBUILDS, limit_kib

LOOK_S = 10.0
"""Between two looks whether what is waited for has passed."""
SETTLE_S = 3.0
"""After a member fails, or is to be replaced, it takes md a moment to begin its recovery."""
CLOSING_S = 20.0
"""How long before its window closes a check goes no further: it has to come to its bound first."""
FROZEN, FROZEN_S = "frozen", 30.0
"""What `sync_action` reads then, and after how long somebody has to do something about it."""
SOON_S = 3600.0
"""A window that opens so soon is waited for: a timer looks each hour."""


def check(device: str, options: CheckOptions) -> tuple[CheckRecord | None, str]:
    """Check an array to its end, or until a signal or its window ends that; return how far it came,
    and why it stopped ("" if all was read). None if it did not even begin.

    All limits are as they were found at the end. Raise UsageError if there is no such array,
    RefusalError if it cannot be checked, StoppedError if somebody else ends the check or sets what
    is moved here, or the array is stopped. What was read by then is kept.
    """
    array = find_array(device)
    path = journal_path(options.state_dir, array.uuid)
    if not options.patient:
        # Who works on the array is named here, rather than what it does there.
        with lock(array, path):
            pass
    put_back_leftovers(array, path, options.notice)
    background = Background()
    try:
        return _Checking(array.now(), options, background).run()
    finally:
        background.close()


def _works_on(array: Array) -> str:
    """Who works on the array, as the rest of a sentence; "" if nobody does."""
    if not is_locked(array.uuid):
        return ""
    try:
        with lock(array):
            return ""
    except RefusalError as error:
        return _as_rest(error)


def _as_rest(error: RefusalError) -> str:
    """As the rest of a sentence, without what to do: it is waited for."""
    text = str(error).partition(";")[0].rstrip(".")
    return text[:1].lower() + text[1:]


class _Checking:
    """One array's check in this process."""

    def __init__(self, array: Array, options: CheckOptions, background: Background) -> None:
        self._array, self._options, self._background = array, options, background
        self._stored = stored.Stored(stored.path_of(options.state_dir, array.uuid))
        self._history = self._stored.at_first
        self._anew = self._why_anew()
        self._began = self._ran = self._stopping = self._is_lost = False
        self._signals = Signals()
        self._promise: Promise = options.goals.promise(part.CHECK, datetime.now())
        known = forecasts.newest(array, options.state_dir)
        self._news = announce.News(
            array, part.CHECK, options.goals, self._promise, known, limit_kib(array)
        )
        self._noticed = ""
        self._told_unheld = False

    def _why_anew(self) -> str:
        """Why no earlier check goes on; "" if one does."""
        if self._options.anew:
            return ASKED_ANEW
        return UNTOLD if obstacles.untold(self._array) else ""

    def run(self) -> tuple[CheckRecord | None, str]:
        with self._signals.caught(self._options.notice):
            why = self._parts()
        return (self._history.checks[-1] if self._ran else self._history.current), why

    def _parts(self) -> str:
        """One part after the other; why there is no more, "" if all is read."""
        options = self._options
        if not self._wait_for_its_window():
            return self._signals.name or WINDOW_SHUT
        while self._signals.going():
            if options.window is not None and options.window.left_s(options.now()) <= CLOSING_S:
                return WINDOW_CLOSED
            array = self._array = self._array.now()
            patient = options.patient or self._began
            if array.sync_action == FROZEN and patient:
                array = self._array = self._thawed(array)
            sync = obstacles.passing(array)
            if array.sync_action in REBUILDS and obstacles.untold(array):
                # Seen now: afterwards another check may hide it.
                self._anew = self._anew or UNTOLD
            if (not sync or not patient) and (text := obstacles.lasting(array)):
                raise RefusalError(text)
            why = sync or obstacles.too_warm(array, options.hottest_c, self._began)
            why = why or (_works_on(array) if patient else "")
            if not why:
                before = self._history
                try:
                    if (ended := self._part(array)) is not None:
                        return ended
                    continue
                except RefusalError as error:
                    # Another run works on the array, which goes first.
                    if not patient:
                        raise
                    self._history, why = before, _as_rest(error)
            self._wait(why)
        return self._signals.name

    def _thawed(self, array: Array) -> Array:
        """mdadm freezes an array for some moments itself, as while it adds a disk."""
        until_s = time.monotonic() + FROZEN_S
        while array.sync_action == FROZEN and time.monotonic() < until_s:
            if not self._signals.pause(1.0):
                break
            array = array.now()
        return array

    def _wait_for_its_window(self) -> bool:
        """Wait until the window opens, if that is soon; whether it is open."""
        window = self._options.window
        opens_in_s = window.opens_in_s(self._options.now()) if window is not None else 0.0
        return opens_in_s <= SOON_S and self._signals.pause(opens_in_s)

    def _wait(self, why: str) -> None:
        """Let some time pass, or less if a signal comes."""
        if why != self._noticed:
            self._options.notice(f"The check of {self._array.device} waits: {why}.")
            self._noticed = why
        current = self._history.current
        self._options.waiting(why, current.share if current else 0.0)
        self._signals.pause(LOOK_S)

    def _part(self, array: Array) -> str | None:
        """One part. Why there is to be no other one, "" if all is read; None if there is."""
        record, said = self._record(array)

        def begins() -> None:
            for text in filter(None, (said, *self._first_words(array, record))):
                self._options.notice(text)
            self._began, self._noticed = True, ""

        options = part.PartOptions(
            self._options.state_dir,
            self._promise,
            self._options.least_kib,
            self._options.hottest_c,
            self._stop,
            self._options.on_window,
            self._options.notice,
            self._unheld,
            self._news,
            self._keep,
            self._stored.was_rewritten,
            begins,
        )
        record, ended = part.run(array, record, options)
        if ended == OVERTAKEN:
            # What was read meanwhile must not be forgotten for what is known here.
            self._history = self._history if self._ran else CheckHistory()
            return ended
        self._anew, self._ran = "", True
        if record.ended is not None:
            return ""
        if ended == WINDOW_CLOSED or (ended and ended == self._signals.name):
            return ended
        if not ended:
            self._see_who_ended_it(record)
        else:
            self._signals.pause(SETTLE_S)
        return None

    def _first_words(self, array: Array, record: CheckRecord) -> Iterator[str | None]:
        """What there is to say as a part begins."""
        if not self._began:
            yield checks.iostats_off(array)
            yield syncs.held(array)
            yield from self._news.before()
            if not record.parts:
                yield checks.mismatched(array)
                yield checks.bad_blocks(array)
        elif self._noticed:
            yield f"The check of {array.device} goes on at {show_share(record.share)}."

    def _unheld(self, text: str) -> None:
        """Once a check, of however many parts it is."""
        if not self._told_unheld:
            self._told_unheld = True
            self._options.unheld(text)

    def _record(self, array: Array) -> tuple[CheckRecord, str]:
        """The check that goes on, or a new one, with what to say of that."""
        shape, members = obstacles.shape(array), obstacles.members(array)
        current, why = self._history.current, self._anew
        if current is not None and not why:
            same = current.array == shape and current.members == members
            if same and not obstacles.rewritten_unseen(array):
                return current, ""
            why = REPLACED
        said = ""
        if current is not None and why != ASKED_ANEW:
            said = (
                f"Since the check of {array.device} stopped at "
                f"{show_share(current.share)}, {why}, so it begins anew."
            )
        record = CheckRecord(
            began=datetime.now(UTC),
            array=shape,
            members=members,
            size=obstacles.size_sectors(array),
            **place(),
        )
        self._history = self._history.begun(record, why or ASKED_ANEW)
        return record, said

    def _stop(self) -> tuple[str, float]:
        """Why a part has to end now, and for how many seconds it may still come to its bound."""
        if not self._signals.going():
            terminated = self._signals.name == signal.SIGTERM.name
            if not self._stopping:
                self._stopping = True
                self._options.notice(STOPPING if terminated else f"{STOPPING} {AT_ONCE}")
            rest_s = part.TERMINATED_REST_S if terminated else part.REST_S
            return self._signals.name, rest_s if self._signals.count == 1 else 0.0
        window = self._options.window
        if window is not None and (left_s := window.left_s(self._options.now())) <= CLOSING_S:
            return WINDOW_CLOSED, part.REST_S if left_s > 0 else 0.0
        return "", 0.0

    def _keep(self, record: CheckRecord) -> None:
        """Store the record; tell of mismatches the first time, and in the end."""
        told = self._history.checks[-1].told
        if record.mismatches > told and (not told or record.ended is not None):
            told = record.mismatches
            self._options.mismatched(record)
        record = record.changed(told=told)
        history = self._history = self._history.now(self._array.device, record)
        self._background(lambda: self._save(history))

    def _save(self, history: CheckHistory) -> None:
        """What the disk does not take is said once; a later record may go through."""
        try:
            self._stored.save(history)
        except (AutotuneError, OSError) as error:
            if not self._is_lost:
                self._is_lost = True
                why = error.strerror if isinstance(error, OSError) else str(error).rstrip(".")
                self._options.notice(
                    f"{self._stored.path} cannot be written: {why}. Correct that, or the "
                    "next check begins where the stored one ends."
                )

    def _see_who_ended_it(self, record: CheckRecord) -> None:
        """Raise StoppedError if nothing of the array's own did."""
        deadline = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline:
            try:
                array = self._array.now()
            except RefusalError as error:
                raise StoppedError(
                    f"The check stopped at {show_share(record.share)}: {error}"
                ) from None
            if obstacles.passing(array) or (obstacles.came_between(array) and not array.degraded):
                return
            if not array.degraded:
                break
            time.sleep(0.1)
        if text := obstacles.lasting(self._array.now()):
            raise StoppedError(f"The check stopped at {show_share(record.share)}: {text}")
        # RAID 10 alone ends at some of these (raid10_sync_request).
        if self._array.level == "raid10" and (bad := checks.bad_blocks(self._array)):
            raise StoppedError(f"The check ended at {show_share(record.share)}. {bad}")
        raise StoppedError(
            f"Stopped at {show_share(record.share)}: somebody else ended the check of "
            f"{self._array.device}; the next `autotune check` goes on from there."
        )
