"""What has to go back later, and the process that waits for it. What cannot go back while a sync
runs moves to a journal of its own, which bars nobody. A check of ours that does not end, or a store
that does not come through, keeps its journal, which does bar. Light: the guardian runs on it."""

import contextlib
import select
import subprocess
import sys
import time
from pathlib import Path

from autotune.errors import AutotuneError, RefusalError
from autotune.knobs.reshape import is_reshaping
from autotune.safety import scope
from autotune.safety.in_time import in_time
from autotune.safety.journal import Journal
from autotune.safety.outcome import Outcome
from autotune.safety.paths import is_held, is_waiting, waiting_path
from autotune.safety.record import Record
from autotune.safety.restore import PATIENCE_S, restore
from autotune.system import sysfs
from autotune.system.process import stat_words

LOOK_S = 5.0
"""The kernel tells of the end of a sync; this is for the case that it does not."""
LEAST_S = 0.2
BEGUN_S = 30.0
"""How long a process has to begin to wait, on a machine that is busy."""
TURN_S = 15.0
"""How long whoever waits has to put it back once the sync is over."""


def see_through(journal: Journal, root: Path = Path("/")) -> Outcome:
    """Wait for the end of the sync, however long that takes, and put back what waits for it; end a
    check of ours that did not end; wait for a late store of ours, and undo it. The journal stays
    held; nobody else needs to hold it."""
    while True:
        _pause(journal.record, root)
        # Nobody clears it in order without that hold: if it is gone, what waited in it still waits.
        # Nor is it needed where its disk fails, or does not answer.
        with contextlib.suppress(AutotuneError, OSError):
            if not journal.record.lost:
                journal = _as_it_is_now(journal)
        outcome = restore(journal, root)
        if not is_unfinished(outcome):
            return outcome
        if outcome.late or not _is_syncing(journal.record, root):
            # A disk has to answer, or mdadm to end: the kernel tells of neither.
            time.sleep(LOOK_S)


def _as_it_is_now(journal: Journal) -> Journal:
    """What was applied later may have joined it."""
    path, texts = journal.path, list[bytes]()
    if not in_time(lambda: texts.append(path.read_bytes()), PATIENCE_S):
        return journal
    now = Journal.read(path, texts[0])
    now.held = journal.held
    return now


def is_unfinished(outcome: Outcome) -> bool:
    """Whether somebody has to see it through."""
    return bool(outcome.waiting) or outcome.checking or outcome.late


def _pause(record: Record, root: Path) -> None:
    time.sleep(LEAST_S)
    try:
        with record.action(root).open("rb", buffering=0) as file:
            file.read()
            poll = select.poll()
            poll.register(file, select.POLLPRI)
            if _is_syncing(record, root):
                poll.poll(LOOK_S * 1000)
    except OSError:
        return


def _is_syncing(record: Record, root: Path) -> bool:
    action = record.action(root)
    syncs = sysfs.read_or(action, "idle") not in ("idle", "frozen")
    return syncs or is_reshaping(action.parent)


def start(path: Path) -> bool:
    """Start a process that sees a waiting journal through. Return whether one does, or none need
    do so any more."""
    process = subprocess.Popen(
        (sys.executable, "-P", "-m", "autotune.safety.guardian", "--wait", str(path.absolute())),
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # It may have to wait for days, and the unit that has started it is over soon.
    scope.move(process.pid)
    # Until it has begun, nobody would seem to wait.
    end = time.monotonic() + BEGUN_S
    try:
        while not is_held(path):
            if time.monotonic() > end or (process.poll() is not None and not is_held(path)):
                return not path.exists()
            time.sleep(0.05)
    except FileNotFoundError:
        return True
    except (AutotuneError, OSError):
        return False
    return True


def put_back(path: Path, root: Path = Path("/")) -> tuple[Record, Outcome]:
    """Restore a journal that an earlier process left. What has to wait is seen through by a
    process of its own.

    Raise FileNotFoundError if somebody else has just done so, RefusalError if a run is under way
    that does so itself, or its guardian takes long to, AutotuneError if the journal cannot be read.
    """
    deadline = time.monotonic() + TURN_S
    while True:
        try:
            journal = Journal.claimed(path)
            break
        except RefusalError:
            record = Journal.load(path).record
            if is_waiting(path):
                if _is_syncing(record, root):
                    return record, Outcome(waiting=record.waits(root))
            elif _lives(record.pid):
                raise
            if time.monotonic() > deadline:
                raise
            time.sleep(LEAST_S)
    outcome = restore(journal, root)
    journal.release()
    if is_unfinished(outcome):
        path = waiting_path(journal.path) if outcome.waiting else journal.path
        if not start(path):
            outcome.failed.append(f"no process waits for what has to go back later ({path})")
    return journal.record, outcome


def _lives(pid: int) -> bool:
    return stat_words(Path(f"/proc/{pid}"))[:1] not in ([], ["Z"], ["X"])


def settle(journal: Path, root: Path = Path("/")) -> None:
    """Before a run: put back what waits since an earlier one, if no sync runs now. `journal` is
    where the run's own will be. Raise RefusalError if that cannot be done, but for a scratch folder
    that cannot be removed: that bars nobody. Raise AutotuneError if the journal is damaged."""
    path = waiting_path(journal)
    try:
        if not path.exists() or _is_syncing(Journal.load(path).record, root):
            return
        record, outcome = put_back(path, root)
    except FileNotFoundError:
        return
    # What is said of a scratch folder begins with its name.
    folder_alone = all(text.startswith(tuple(record.scratch)) for text in outcome.failed)
    if not folder_alone:
        raise RefusalError(
            "What an earlier run left could not be put back: " + "; ".join(outcome.failed) + "."
        )


def main(path: Path) -> int:
    """Wait with a journal, unless another process does so already."""
    try:
        journal = Journal.claimed(path)
    except (AutotuneError, OSError):
        return 0
    return 0 if see_through(journal).complete else 1
