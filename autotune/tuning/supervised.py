"""A worker process that may die without a word, and the one above it that says what happened.

Numeric libraries can end a process by a segmentation fault, and the kernel does when memory runs
short. The guardian puts the settings back; this finds the words, and marks the run.
"""

import ctypes
import faulthandler
import json
import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Any

from autotune.errors import AutotuneError
from autotune.safety.journal import Journal
from autotune.safety.paths import journal_path, waiting_path
from autotune.suggested import name_folder

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PR_SET_PDEATHSIG = 1
_FRAME = re.compile(r'File "(.+?)", line (\d+)')
_GUARDIAN_S = 60.0
_BACK = " The original settings are back."
_CAUSES = {
    signal.SIGSEGV: "a segmentation fault",
    signal.SIGKILL: "SIGKILL: a person's, the kernel's (memory ran short) or the guardian's (the "
    "command had been stopped for a minute)",
}
_line: int | None = None
"""Where the worker tells what it works on; None if nobody listens."""


def tell(state_dir: Path, uuid: str, device: str, run: int, kept: bool = False) -> None:
    """Let the process above know which run this is, for the case that this one dies. `kept`: what
    it found is in force."""
    if _line is not None:
        told = {"state": str(state_dir.absolute()), "uuid": uuid, "device": device, "run": run}
        told["kept"] = kept
        os.write(_line, json.dumps(told).encode() + b"\n")


def supervise() -> int | None:
    """Go on in a worker process: return None there, and here its exit code once it has ended.

    Signals that are meant for the worker reach it, and it does not outlive this process. Neither
    is stopped by a terminal. Raise AutotuneError with what happened if it died of a signal.
    """
    global _line  # noqa: PLW0603
    # Both or none: one that is stopped alone would keep the other waiting, and the terminal.
    for number in (signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    reading, writing = os.pipe()
    trace = os.memfd_create("trace")
    sys.stdout.flush()
    sys.stderr.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*_ENDS, signal.SIGCHLD})
    above, worker = os.getpid(), os.fork()
    if not worker:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != above:
            os._exit(1)
        os.close(reading)
        _line = writing
        faulthandler.enable(trace, all_threads=False)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    os.close(writing)
    try:
        status = _wait(worker)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code
    if sys.stderr.isatty():
        # The progress had hidden the cursor, which is behind its last line.
        print("\x1b[?25h", file=sys.stderr)
    with os.fdopen(reading, "rb") as pipe:
        os.set_blocking(reading, False)
        told = (pipe.read() or b"").splitlines()
    os.lseek(trace, 0, os.SEEK_SET)
    with os.fdopen(trace, "rb") as file:
        where = _place(file.read().decode("utf-8", "replace"))
    run = json.loads(told[-1]) if told else None
    raise AutotuneError(_what_happened(-code, where, run))


def _wait(worker: int) -> int:
    """Pass signals on until the worker has ended; return its status."""
    while True:
        info = signal.sigwaitinfo({*_ENDS, signal.SIGCHLD})
        if info.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(worker, os.WNOHANG)
            if ended:
                return status
        elif info.si_code <= 0:
            # By a process, and for this one alone; what comes from the terminal (the kernel)
            # goes to the worker too.
            os.kill(worker, info.si_signo)


def _place(trace: str) -> str:
    """The innermost line of Python in a trace of `faulthandler`, as the rest of a sentence."""
    found = _FRAME.search(trace)
    if not found:
        return ""
    return f" in {found[1].rpartition('site-packages/')[2]}, line {found[2]}"


def _what_happened(number: int, where: str, told: dict[str, Any] | None) -> str:
    cause = _CAUSES.get(number) or f"the signal {signal.Signals(number).name}"  # type: ignore[call-overload]
    text = f"The command was ended by {cause}{where}."
    if told is None:
        return text
    state_dir, run = Path(told["state"]), told["run"]
    # The worker read it, not this process.
    name_folder(state_dir)
    if told["kept"]:
        text += (
            f" What it found is in force; `autotune restore {told['device']}` puts the original "
            "settings back."
        )
    else:
        text += _what_is_back(journal_path(state_dir, told["uuid"]))
    try:
        trials = _mark(state_dir, run, f"It was ended by {cause}{where}.")
    except AutotuneError as error:
        return f"{text} {error}"
    if trials:
        # Loads pydantic, which is needed in this case only.
        from autotune.quantities import show_count  # noqa: PLC0415

        text += (
            f" Run {run} is kept with {show_count(trials, 'trial')}: "
            f"`autotune run {told['device']} --resume`, with the same "
            f"options, continues it, and `autotune solve {run}` answers from it."
        )
    return text


def _what_is_back(path: Path) -> str:
    """What the guardian has put back, which takes it a moment, in a sentence."""
    until = time.monotonic() + _GUARDIAN_S
    while path.exists() and time.monotonic() < until:
        time.sleep(0.1)
    try:
        if not path.parent.is_dir():
            return (
                f" Whether the original settings are back cannot be known, since {path.parent} is "
                "gone; `autotune show` says what is set."
            )
        if not path.exists():
            record = Journal.load(waiting_path(path)).record
            left = [f"`autotune restore` is to remove {folder}" for folder in record.scratch]
            waits = "; ".join((*record.waits(Path("/")), *left))
            return f" The original settings are back, but {waits}." if waits else _BACK
    except FileNotFoundError:
        return _BACK
    except (AutotuneError, OSError):
        pass
    return " Not all settings are back yet; run `autotune restore`."


def _mark(state_dir: Path, run: int, why: str) -> int:
    """Note why the run was cut; return how many trials it has, 0 if it is none to go on with."""
    # Loads SQLAlchemy, which is needed in this case only.
    from autotune.store.database import Store  # noqa: PLC0415
    from autotune.tuning.resume import interrupted  # noqa: PLC0415

    store = Store.existing(state_dir)
    if store is None or store.run(run).state != "running":
        return 0
    store.finish_run(run, "interrupted", why)
    return store.run(run).trials if interrupted([store.run(run)]) else 0
