"""The process that guards: what `autotune guard` becomes once it knows what is wanted.

A guard waits for months, at best. What reads a command line and a configuration takes 30 MB, so
none of that is loaded here: 20 MB are enough to wait, and to guard.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from autotune.background import Background, write_line
from autotune.cli.ending import ending
from autotune.cli.terminal import choose_log_format, console, fitting, notice
from autotune.errors import RefusalError
from autotune.guard.goals import Goals
from autotune.guard.metrics import GuardMetricsFile
from autotune.guard.session import GuardOptions, Summary
from autotune.guard.session import guard as guard_array
from autotune.guard.stored import Recorder
from autotune.guard.window import Window
from autotune.report import guard as report
from autotune.service.notify import run_command
from autotune.system.array import Array, find_array

if TYPE_CHECKING:
    from autotune.report.guard_view import GuardDisplay


@dataclass(frozen=True)
class GuardArguments:
    """What the command line and the configuration say, in types that JSON has. `command` is the
    one for the event `unheld`, empty if none is wanted."""

    device: str
    ceiling_ns: float
    within_s: float | None
    by: str | None
    policy: str | None
    first: str
    rebuild_s: float | None
    least_bytes: float
    wait: bool
    as_json: bool
    state_dir: str
    textfile: str | None
    command: tuple[str, ...]


def become(arguments: GuardArguments) -> NoReturn:
    """Guard, in place of the process that runs now."""
    words = [sys.executable, "-P", "-m", __name__, arguments.device, json.dumps(asdict(arguments))]
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, words)


def guard(arguments: GuardArguments) -> None:
    """Guard the array's syncs as they come, or the one that is under way."""
    array, ceiling_ns = find_array(arguments.device), arguments.ceiling_ns
    goals = Goals(
        ceiling_ns,
        arguments.within_s,
        arguments.by,
        arguments.policy,
        arguments.first,
        arguments.rebuild_s,
    )

    def run_hook(text: str) -> None:
        if fault := run_command(arguments.command, "unheld", array.device, array.uuid, text):
            notice(fault)

    def say(text: str) -> None:
        background(lambda: notice(text))

    def unheld(text: str) -> None:
        say(text)
        if arguments.command:
            # The throttle has to be moved meanwhile.
            threading.Thread(target=run_hook, args=(text,)).start()

    with _display(arguments) as display:
        background, shown = Background(), _Shown(arguments, array, display)
        options = GuardOptions(
            goals=goals,
            state_dir=Path(arguments.state_dir),
            on_window=lambda window: background(lambda: shown.window(window)),
            finished=lambda summary: background(lambda: shown.end(summary)),
            unguarded=lambda: background(shown.unguarded),
            notice=say,
            unheld=unheld,
            least_kib=arguments.least_bytes / 1024,
        )
        if arguments.wait:
            # One that was killed may have told of a sync that is over.
            background(shown.metrics.over)
        try:
            found = guard_array(arguments.device, options, arguments.wait)
        finally:
            try:
                background.close()
            finally:
                shown.metrics.end()
                shown.recorder.cut()
    if not found:
        _tell_idle(arguments)


def _tell_idle(arguments: GuardArguments) -> None:
    """Say why there is nothing to guard."""
    if find_array(arguments.device).sync_action == "reshape":
        raise RefusalError(
            f"A reshape of {arguments.device} runs, which a guard cannot slow down; guard what "
            "runs after it (--wait)."
        )
    text = (
        f"No sync runs on {arguments.device}, so there is nothing to guard (--wait waits for one)."
    )
    print(json.dumps({"kind": "idle", "device": arguments.device}) if arguments.as_json else text)


class _Shown:
    """What is seen of a guard: its metrics, what is kept of a sync, its lines, and the terminal."""

    def __init__(
        self, arguments: GuardArguments, array: Array, display: "GuardDisplay | None"
    ) -> None:
        self._display, self._as_json = display, arguments.as_json
        self._ceiling_ns = arguments.ceiling_ns
        self._tell = _Output(arguments.wait)
        file = Path(arguments.textfile) if arguments.textfile else None
        self.metrics = GuardMetricsFile(file, array, arguments.ceiling_ns, notice)
        self.recorder = Recorder(
            Path(arguments.state_dir), array, arguments.ceiling_ns, arguments.policy, notice
        )

    def window(self, window: Window) -> None:
        self.metrics.window(window)
        self.recorder.window(window)
        if self._as_json:
            self._tell(json.dumps(report.window_document(window)))
        if self._display is not None:
            self._display.window(window)

    def end(self, summary: Summary) -> None:
        self.metrics.over(summary.released)
        self.recorder.over(summary)
        if self._as_json:
            line = json.dumps(report.summary_document(summary))
        else:
            line = "\n".join(fitting([report.summary_line(summary, self._ceiling_ns)], sys.stdout))
        if self._display is None:
            self._tell(line)
            return
        self._display.over()
        with self._display.away():
            self._tell(line)
        self._display.draw_at_rest()

    def unguarded(self) -> None:
        self.metrics.unguarded()
        self.recorder.cut()
        if self._display is not None:
            self._display.over()
            self._display.draw_at_rest()


class _Output:
    """Standard output, line by line. A guard that waits goes on though nothing can be written."""

    def __init__(self, wait: bool) -> None:
        self._wait, self._works = wait, True

    def __call__(self, line: str) -> None:
        try:
            write_line(line)
            self._works = True
        except OSError as error:
            if not self._wait:
                raise
            if self._works:
                notice(f"Standard output cannot be written to: {error.strerror}.")
            self._works = False


@contextmanager
def on_terminal(
    device: str, ceiling_ns: float, is_check: bool = False, waits: bool = False
) -> "Iterator[GuardDisplay | None]":
    """What shows how it goes on. Where nobody watches, rich is not loaded: it takes 5 MB. `waits`:
    it stays when no sync runs."""
    if not sys.stderr.isatty():
        yield None
        return
    from autotune.report.guard_view import CHECK_ENDING, ENDING, GuardDisplay

    ending = CHECK_ENDING if is_check else ENDING
    idle = f"No sync of {device} runs; waiting for one. Ctrl-C ends this." if waits else ""
    with GuardDisplay(console(stderr=True), device, ceiling_ns, ending, idle) as display:
        display.draw_at_rest()
        yield display


def _display(arguments: GuardArguments) -> "AbstractContextManager[GuardDisplay | None]":
    """Lines for programs do not go between those for people."""
    if arguments.as_json and sys.stdout.isatty():
        return nullcontext()
    return on_terminal(
        find_array(arguments.device).device, arguments.ceiling_ns, waits=arguments.wait
    )


if __name__ == "__main__":
    choose_log_format(())
    arguments = GuardArguments(**json.loads(sys.argv[2]))
    with ending(arguments.as_json):
        guard(arguments)
