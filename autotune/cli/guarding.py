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
from autotune.system.array import find_array

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
    goals = Goals(ceiling_ns, arguments.within_s, arguments.by, arguments.policy, arguments.first)

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

    metrics = GuardMetricsFile(
        Path(arguments.textfile) if arguments.textfile else None, array, ceiling_ns, notice
    )
    recorder = Recorder(Path(arguments.state_dir), array, ceiling_ns, arguments.policy, notice)
    with _display(arguments) as display:
        background, tell = Background(), _Output(arguments.wait)

        def report_window(window: Window) -> None:
            metrics.window(window)
            recorder.window(window)
            if arguments.as_json:
                tell(json.dumps(report.window_document(window)))
            if display is not None:
                display.window(window)

        def report_end(summary: Summary) -> None:
            metrics.over(summary.released)
            recorder.over(summary)
            if arguments.as_json:
                line = json.dumps(report.summary_document(summary))
            else:
                line = "\n".join(fitting([report.summary_line(summary, ceiling_ns)], sys.stdout))
            if display is not None:
                display.over()
            with display.away() if display is not None else nullcontext():
                tell(line)
            if display is not None:
                display.draw_at_rest()

        options = GuardOptions(
            goals,
            Path(arguments.state_dir),
            lambda window: background(lambda: report_window(window)),
            lambda summary: background(lambda: report_end(summary)),
            say,
            unheld,
            arguments.least_bytes / 1024,
        )
        # One that was killed may have told of a sync that is over.
        background(metrics.over)
        try:
            found = guard_array(arguments.device, options, arguments.wait)
        finally:
            try:
                background.close()
            finally:
                metrics.over()
                recorder.cut()
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
