"""`autotune guard`: for each sync the journal, the guardian and the lock around the loop."""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

from autotune.errors import AutotuneError, RefusalError, StoppedError, UsageError
from autotune.guard import announce, stripe_cache
from autotune.guard.goals import Goals, Promise
from autotune.guard.loop import GuardLoop
from autotune.guard.preconditions import no_room, put_back_leftovers, refusal, wake_udev
from autotune.guard.throttle import Throttle, files
from autotune.guard.window import Window
from autotune.measure.sync_progress import WAIT_S, running, under_way, wait_for_one
from autotune.preflight import syncs
from autotune.preflight.checks import iostats_off
from autotune.safety.guardian import guarded
from autotune.safety.locks import is_locked, lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.signals import PAUSE_S, Signals
from autotune.sync_forecast import stored
from autotune.system import sysfs
from autotune.system.array import Array, find_array
from autotune.system.blockdev import number
from autotune.system.mdstat import sync_position_kib
from autotune.system.sync import CHECKS, FLOOR_KIB, NAMES, REBUILDS, limit_kib

BROKEN_S = 10.0
"""After its probe or its guardian has broken, so long passes until it is tried again."""
AGAIN_S = 3600.0
"""After a release the ceiling is tried again: by then the foreground may be another."""
LEFTOVERS_S = 60.0
"""How long passes until what could not be put back is tried again."""


@dataclass(frozen=True)
class Summary:
    """One sync under guard. `judged` windows had requests enough for a p99; `over` of these were
    above the ceiling. `ended` says why it is over; if it was `released`, nothing holds the sync any
    more, since the ceiling was out of reach, or something waits behind this check."""

    action: str
    seconds: float
    synced_bytes: int
    windows: int
    judged: int
    over: int
    ended: str
    released: bool
    finish_s: float | None = None
    """The deadline that was to be met, in seconds since the epoch, if there was one."""
    late_s: float | None = None
    """How much later than that the sync was over; negative if it was sooner, None if it is not
    over."""
    overtaken: bool = False
    """It was a check, in whose place there is a recovery or resync now, which is guarded next."""
    interrupted: bool = False
    """It is over, but was cut before its end, as where the disk that it was written to failed."""
    few_over: int = 0
    """In so many other windows there were too few requests to judge, and some surely took longer
    than the ceiling."""
    first: Literal["", "deadline", "ceiling"] = ""
    """Which of both went first, where they excluded each other."""


@dataclass(frozen=True)
class GuardOptions:
    """What to keep, and whom to call: `on_window` for every window, `finished` for each sync that
    is over, `unguarded` when it is gone or goes on without a guard, `notice` with what is worth a
    sentence, `unheld` when a ceiling is out of reach, a deadline cannot be met or not together with
    the ceiling, or a check is released because something waits behind it (each once a sync). None
    of them may take long, for the throttle has to be moved meanwhile."""

    goals: Goals
    state_dir: Path
    on_window: Callable[[Window], None]
    finished: Callable[[Summary], None]
    unguarded: Callable[[], None]
    notice: Callable[[str], None]
    unheld: Callable[[str], None]
    least_kib: float = FLOOR_KIB


def guard(device: str, options: GuardOptions, wait: bool = False) -> bool:
    """Keep what was asked for while a sync of the array lasts; with `wait`, for each sync, until a
    signal comes. False if no sync runs, or none any more, and none is waited for.

    What was set is put back after each sync. Raise UsageError if there is no such array,
    RefusalError if it cannot be guarded or another run of autotune works on it, StoppedError if it
    is stopped or somebody else sets what is moved here, AutotuneError if its probe or guardian
    breaks, or if a recovery or resync was interrupted. With `wait` these are noticed; a refusal is
    asked again each second, what broke is tried again, and what somebody else has set is theirs
    until the sync is over.
    """
    array = find_array(device)
    path, leftovers_s = journal_path(options.state_dir, array.uuid), 0.0
    put_back_leftovers(array, path, options.notice)
    if text := refusal(array):
        raise RefusalError(text)
    signals, noticed, warned, found = Signals(), "", "", wait
    # On a clock that nobody sets.
    began: tuple[str, float] | None = None
    with signals.caught(options.notice):
        if not wait and not under_way(array):
            return False
        if under_way(array) and not running(array):
            options.notice(
                f"The sync of {array.device} waits for that of another array on the same disks; it "
                "is guarded as soon as it runs."
            )

        def pause(seconds: float) -> bool:
            # What could not go back at first, such as speeds that are hidden without redundancy;
            # not what a run just begins. Each try is noted in the journal, so it is seldom.
            nonlocal leftovers_s
            now_s = time.monotonic()
            if now_s >= leftovers_s and not is_locked(array.uuid):
                stays = put_back_leftovers(array, path, options.notice)
                leftovers_s = now_s + LEFTOVERS_S if stays else 0.0
            return signals.pause(seconds)

        while not signals.name and wait_for_one(array, pause, wait):
            rest_s, found = 0.0, True
            if not (action := under_way(array)):
                # It was over in that moment.
                continue
            if began is None or began[0] != action:
                began = action, time.clock_gettime(time.CLOCK_BOOTTIME)
            # Not by local times, of which one hour comes twice.
            ago_s = time.clock_gettime(time.CLOCK_BOOTTIME) - began[1]
            since = datetime.fromtimestamp(time.time() - ago_s)
            try:
                guarded_now = dataclasses.replace(array.now(), sync_action=action)
                done, text = _one(guarded_now, options, signals, bool(warned), since)
                options.finished(done)
                noticed, warned = "", text or warned
                # Of one that is only released, the deadline stays.
                began = began if done.released else None
                _tell_if_cut(done, array, options, wait)
                if not (wait or done.overtaken):
                    break
                rest_s = AGAIN_S if done.released else 0.0
            except UsageError:
                raise
            except (AutotuneError, OSError) as error:
                # Whatever broke, such as its probe, the next syncs are to be guarded too.
                if not wait:
                    raise
                if str(error) != noticed:
                    options.notice(noticed := str(error))
                rest_s = _rest_after(error, options)
            if not _sit_out(array, action, rest_s, signals):
                options.unguarded()
                warned, began = "", None
        return found or bool(signals.name)


def _rest_after(error: Exception, options: GuardOptions) -> float:
    """How many seconds a sync is left alone whose guard ended so."""
    if isinstance(error, StoppedError):
        options.unguarded()
        return math.inf
    return WAIT_S if isinstance(error, RefusalError) else BROKEN_S


def _tell_if_cut(done: Summary, array: Array, options: GuardOptions, wait: bool) -> None:
    """Raise AutotuneError, or with `wait` notice it, if a recovery or resync was interrupted."""
    if not done.interrupted or done.action not in (NAMES[action] for action in REBUILDS):
        return
    text = (
        f"The {done.action} of {array.device} was interrupted, so the array may still lack "
        "redundancy; see /proc/mdstat."
    )
    if not wait:
        raise AutotuneError(text)
    options.notice(text)


def _sit_out(array: Array, action: str, seconds: float, signals: Signals) -> bool:
    """Leave such a sync alone for so long, at the most to its end. Whether it is still under way:
    another one may begin at once."""
    deadline, reached = time.monotonic() + seconds, (0, 0)
    while (there := under_way(array) == action != "") and time.monotonic() < deadline:
        mdstat = sysfs.read(array.root / "proc/mdstat")
        if (position := sync_position_kib(mdstat, array.name) or reached) < reached:
            return False
        reached = position
        if not signals.pause(PAUSE_S):
            break
    return there


def _first(promise: Promise) -> Literal["", "deadline", "ceiling"]:
    if not math.isfinite(promise.ceiling_ns):
        return ""
    return "deadline" if promise.binds else "ceiling"


def _late_s(loop: GuardLoop, promise: Promise) -> float | None:
    return loop.now_s() - promise.finish_s if promise.finish_s is not None else None


def _ended(loop: GuardLoop, action: str, over: bool, overtaken: bool, interrupted: bool) -> str:
    """Why a sync is not guarded any more; "" if somebody has stopped the guard."""
    what = NAMES.get(action, action)
    if loop.released:
        why = loop.behind if action in CHECKS and loop.behind else "the ceiling is out of reach"
        return f"{why}, so the {what} runs at full speed again"
    if overtaken:
        return f"a recovery or resync goes before the {what}"
    if interrupted:
        return f"the {what} was interrupted"
    return f"the {what} is over" if over else ""


def _promise(array: Array, options: GuardOptions, began: datetime) -> Promise:
    """What is promised for this sync, which was first seen when it `began`. A deadline that has
    passed leaves the ceiling or policy; raise RefusalError if there is none."""
    goals, action = options.goals, array.sync_action
    slowest_s = number(array.md / "component_size") / max(options.least_kib, FLOOR_KIB)
    try:
        return goals.promise(action, began, slowest_s)
    except UsageError:
        if math.isinf(goals.ceiling_ns) and goals.policy is None:
            raise RefusalError(
                f"The deadline {goals.by} has passed, and nothing else was asked for, so this sync "
                "is not guarded."
            ) from None
        options.notice(f"The deadline {goals.by} has passed, so this sync is guarded without one.")
        return dataclasses.replace(goals, by=None).promise(action, began, slowest_s)


def _one(
    array: Array, options: GuardOptions, signals: Signals, warned: bool, began: datetime
) -> tuple[Summary, str]:
    """Guard the sync that is under way, to its end. A deadline counts from when that `began`,
    however often this is tried. Also what was said if it was not held any more,
    which is not said again if there was a warning."""
    action, started = array.sync_action, time.monotonic()
    what = NAMES.get(action, action)
    path = journal_path(options.state_dir, array.uuid)
    said, told, journaled = "", "", False

    def wake() -> None:
        if journaled:
            wake_udev(array, options.notice)

    with contextlib.ExitStack() as stack:
        # Onto a disk that was added just before. While the journal was there, udev set nothing; and
        # not while the lock is held.
        stack.callback(wake)
        stack.enter_context(lock(array, path, guard=True))
        put_back_leftovers(array, path, options.notice)
        if text := no_room(array):
            raise RefusalError(text)
        # Before a journal and a guardian, which a deadline that has passed needs none of.
        promise = _promise(array, options, began)
        written = [*files(array), *stripe_cache.files(array)]
        journal = new_journal(path, array.uuid, array.device, written)
        journaled = action in REBUILDS
        guardian = stack.enter_context(guarded(journal, options.notice))

        def going() -> bool:
            if why := guardian.lost:
                raise AutotuneError(
                    f"Stopped: {why}, and without it a kill of autotune would leave settings "
                    "behind."
                )
            return signals.going()

        known = stored.newest(array, options.state_dir)
        news = announce.News(array, action, options.goals, promise, known, limit_kib(array))

        def on_window(window: Window) -> None:
            nonlocal said, told
            options.on_window(window)
            for text in news.of(window):
                options.notice(text)
            for text in news.conflict(window):
                (options.unheld if promise.binds and not warned else options.notice)(text)
            if loop.behind and not told:
                told = announce.waiting_behind(array.device, what, loop)
                (options.unheld if loop.released and not warned else options.notice)(told)
                said = told if loop.released else said
            elif window.out_of_reach and not (warned or said):
                said = announce.out_of_reach(array.device, what, promise, window, loop)
                options.unheld(said)

        try:
            # Nobody means to bound a rebuild; a check may be one in parts.
            stays = syncs.held(array) if action in REBUILDS else None
            for text in filter(None, (iostats_off(array), stays, *news.before())):
                options.notice(text)
            throttle = Throttle(array, guardian.journal)
            curve = announce.curve(array, action, known) if known else None
            loop = GuardLoop(array, throttle, promise, options.least_kib, curve)
            over = loop.run(going, on_window)
            overtaken = over and loop.overtaken
            interrupted = over and not overtaken and loop.interrupted
        except OSError:
            if array.md.is_dir():
                raise
            raise StoppedError(f"Stopped: {array.device} was stopped.") from None
    summary = Summary(
        what,
        time.monotonic() - started,
        loop.done_bytes,
        loop.windows,
        loop.judged,
        loop.over,
        _ended(loop, action, over, overtaken, interrupted) or f"stopped by {signals.name}",
        loop.released,
        promise.finish_s,
        _late_s(loop, promise) if over and not (overtaken or interrupted) else None,
        overtaken,
        interrupted,
        loop.few_over,
        _first(promise) if news.told_impossible else "",
    )
    return summary, said
