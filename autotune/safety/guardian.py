"""A small process that puts the originals back when the tuner dies without doing so. The tuner is
the process that has opened the journal: a run, but also a guard, a check, a forecast, a design.

It holds the reading end of a pipe whose writing end only the tuner has. When the tuner ends, for
whatever reason, the pipe breaks; if the journal is still there then, the guardian restores it. One
that is stopped is killed (`heartbeat`). It has a session of its own, so no signal to the terminal's
group reaches it, and an `oom_score_adj` with which the OOM killer never takes it.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import syslog
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from autotune.durable import open_to_read
from autotune.errors import AutotuneError, RestoreError, SignalledError
from autotune.safety import deferred_restore, scope
from autotune.safety.heartbeat import End, Heartbeat, wait_for_the_end
from autotune.safety.in_time import in_time
from autotune.safety.journal import Journal
from autotune.safety.journal_text import OVER, is_over
from autotune.safety.outcome import Outcome
from autotune.safety.paths import applied_path, is_held, waiting_path
from autotune.safety.restore import PATIENCE_S, remove_kept_scratch, restore
from autotune.system.process import stat_words

OOM_SCORE_ADJ = "-1000"
"""With more than that it would go along where a control group is killed as a whole for its memory
(Documentation/admin-guide/cgroup-v2.rst, memory.oom.group)."""
DISMISS_TIMEOUT_S, DISMISS_LOOK_S = 60.0, 0.02
HOLD_S, HOLD_LOOK_S = 30.0, 0.01
"""How long a dead tuner may still hold its journal. `restore` gives up after half of that."""


class Guardian:
    """Starts the guardian of a journal; `dismiss` once everything is back."""

    def __init__(self, journal: Journal) -> None:
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-m", "autotune.safety.guardian", str(journal.path)),
            stdin=reading,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        os.close(reading)
        # While it starts, which takes longer.
        scope.move(self._process.pid)
        # It says so when it stands ready; only then may the first write happen.
        self.journal = journal
        assert self._process.stdout is not None
        if self._process.stdout.readline() != b"ready\n":
            raise AutotuneError(
                "The guardian, which would put the settings back after a kill, did not start; "
                "nothing was changed."
            )
        self.heartbeat = Heartbeat(writing)
        journal.watched = True

    @property
    def alive(self) -> bool:
        """Whether it still stands ready."""
        return self._process.poll() is None and not self._is_stopped()

    @property
    def lost(self) -> str:
        """Why a kill would leave behind what the journal speaks of; "" if it would not."""
        if not self.alive:
            return "the guardian process was killed or stopped"
        with contextlib.suppress(OSError):
            if self.journal.is_there():
                return ""
        return "somebody has removed the journal, or it cannot be seen any more"

    def _is_stopped(self) -> bool:
        return stat_words(Path(f"/proc/{self._process.pid}"))[:1] in (["T"], ["t"])

    def dismiss(self) -> None:
        """End the guardian; it restores first if the journal is still there. One that the kernel
        keeps waiting is left to go on."""
        self.heartbeat.stop(self.journal.cleared)
        deadline = time.monotonic() + DISMISS_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            if self._is_stopped():
                # The journal says whether anything is left to do.
                self._process.kill()
            time.sleep(DISMISS_LOOK_S)
        self.journal.watched = False
        self.journal.settle_kept()
        if self._process.stdout is not None:
            self._process.stdout.close()


@contextlib.contextmanager
def guarded(journal: Journal, notice: Callable[[str], None]) -> Iterator[Guardian]:
    """Whatever changes what the journal says, under a guardian's eyes: at the end it is put back,
    unless the journal is cleared by then. What somebody else has set meanwhile is told to `notice`.

    Raise RestoreError if something could not be put back, with what it came with.
    """
    why = ""
    try:
        guardian = Guardian(journal)
    except BaseException:
        journal.close()
        raise
    try:
        yield guardian
    except SignalledError:
        # That says that all is put back.
        raise
    except AutotuneError as error:
        why = f"{error} "
        raise
    finally:
        # Not whether the file is there: it may have gone with its file system.
        outcome = Outcome() if journal.cleared else restore(journal, at_once=True)
        left = not outcome.complete and journal.path.exists()
        # The guardian tries once more what failed, for which it needs the journal.
        journal.release()
        guardian.dismiss()
        mended = left and not journal.path.exists()
        _have_seen_through(waiting_path(journal.path))
        if outcome.waiting:
            notice("; ".join(outcome.waiting) + ".")
        if outcome.foreign:
            notice("This stays: " + "; ".join(outcome.foreign))
        if outcome.checking and not mended:
            raise RestoreError(
                f"The check of {journal.record.device} does not end, as if a disk hangs; a process "
                "of autotune goes on trying, and then puts the rest back."
            )
        if outcome.late and not mended:
            raise RestoreError(
                f"A setting of {journal.record.device} has not taken effect yet, as if a disk "
                "hangs; a process of autotune waits for that, and then puts the rest back."
            )
        if not outcome.complete and not mended:
            raise RestoreError(
                f"{why}Not everything could be put back: "
                + "; ".join(outcome.failed)
                + ". Correct that and run `autotune restore`."
            )


def _have_seen_through(path: Path) -> None:
    """The guardian does so, unless one was killed. A scratch folder alone waits for no sync."""
    with contextlib.suppress(AutotuneError, OSError):
        if not is_held(path) and Journal.load(path).record.originals:
            deferred_restore.start(path)


def watch_over(path: Path) -> int:
    """Wait until the pipe on standard input breaks, then restore what is left to restore."""
    _withstand()
    syslog.openlog("autotune")
    # Kept open and in mind: the journal may be deleted, or emptied, before the tuner dies.
    try:
        file = os.fdopen(open_to_read(path), "rb")
    except OSError:
        # Gone already; whoever waits for the word hears none, and changes nothing.
        return 1
    with file:
        first = file.read()
        # The tuner may be dead already.
        with contextlib.suppress(BrokenPipeError):
            os.write(1, b"ready\n")
        end = wait_for_the_end(_tuner(path, first))
        journal = _what_is_left(path, file, first, end)
        if journal is None:
            return 0
        outcome = restore(journal, at_once=True)
        if deferred_restore.is_unfinished(outcome):
            # Whoever waits for this process need not wait for that.
            if os.fork():
                return 0
            _let_go_of_everything(journal)
            outcome = deferred_restore.see_through(journal)
    syslog.syslog(
        syslog.LOG_WARNING,
        f"{_SAID[end]}; put back: {outcome.restored}, removed: {outcome.removed}, "
        f"left to others: {outcome.foreign}, failed: {outcome.failed}",
    )
    return 0 if outcome.complete else 1


_SAID = {
    End.DONE: "autotune ended, and left something",
    End.DEAD: "autotune ended without cleaning up",
    End.KILLED: "autotune was stopped or hung, and so was killed",
    End.STUCK: "autotune was stopped or hung, and hangs in the kernel since it was killed",
}


def _tuner(path: Path, first: bytes) -> int:
    with contextlib.suppress(AutotuneError):
        return Journal.read(path, first).record.pid
    return 0


def _let_go_of_everything(journal: Journal) -> None:
    """Keep no terminal, pipe or folder from its owner."""
    journal.path = journal.path.absolute()
    os.chdir("/")
    nothing = os.open("/dev/null", os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    os.close(nothing)


def _withstand() -> None:
    """Let nothing but SIGKILL end this process."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE_ADJ)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A service that is stopped gets one with all its processes; the tuner's end is the word.
        signal.signal(number, signal.SIG_IGN)


def _have_it_let_go(file: BinaryIO) -> None:
    """Wait for the tuner's hold on its journal, since its pipe may break a moment before. Not for
    one of its children: forked, and waiting for the disk that its program is on."""
    deadline = time.monotonic() + HOLD_S
    while time.monotonic() < deadline:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(HOLD_LOOK_S)
        else:
            return


def _read_again(file: BinaryIO) -> bytes | None:
    """All of a file; None if its disk fails, or does not answer."""
    texts: list[bytes] = []

    def read() -> None:
        file.seek(0)
        texts.append(file.read())

    with contextlib.suppress(OSError):
        if in_time(read, PATIENCE_S):
            return texts[0]
    return None


def _what_is_left(path: Path, file: BinaryIO, first: bytes, end: End) -> Journal | None:
    """The journal if there is anything to put back. `file` is it as it was opened at the start,
    `first` what it said then."""
    if end is not End.STUCK:
        _have_it_let_go(file)
    text = _read_again(file)
    if text is None:
        # Its disk fails. What is kept on purpose must not go back, all else must.
        text = OVER if end is End.DONE else b""
    if is_over(text):
        with contextlib.suppress(AutotuneError, OSError):
            kept = applied_path(path.parent.parent, path.stem)
            if os.path.samestat(kept.stat(), os.fstat(file.fileno())):
                remove_kept_scratch(Journal.load(kept))
        return None
    for place in (waiting_path(path), applied_path(path.parent.parent, path.stem)):
        with contextlib.suppress(OSError):
            if os.path.samestat(place.stat(), os.fstat(file.fileno())):
                path = place
                break
    lost = not text.startswith(first)
    journal = Journal.read(path, first if lost else text)
    journal.held = file
    if lost:
        journal.record.lost = journal.record.checking = True
    return journal


if __name__ == "__main__":
    if sys.argv[1] == "--wait":
        _withstand()
        sys.exit(deferred_restore.main(Path(sys.argv[2])))
    sys.exit(watch_over(Path(sys.argv[1])))
