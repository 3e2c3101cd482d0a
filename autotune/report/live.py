"""A run as it goes on, on a terminal; nothing when nobody watches."""

import contextlib
import io
import time
from types import TracebackType
from typing import Self, TextIO, cast

from rich.console import Console
from rich.live import Live
from rich.markup import escape

from autotune.guard.aside import Aside, write
from autotune.problem.figure import Estimate
from autotune.report.live_view import NARROW, Shown, View, table
from autotune.store import TrialRecord

PERIOD_S = 0.25
"""Not drawn more often, whatever is reported: an ssh may be slow."""


class _Beside(io.TextIOBase):
    """A terminal to which a thread of its own writes: one that takes nothing any more (Ctrl-S, a
    stalled ssh) keeps nobody from looking after the array. Nor does one that is gone."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal, self._aside = terminal, Aside()
        # One that is gone says that it is none, and what is meant for it would go elsewhere.
        self._was_there = terminal.isatty()

    def isatty(self) -> bool:
        return self._was_there

    def fileno(self) -> int:
        return self._terminal.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._terminal.encoding

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._aside(lambda: write(self._terminal, text))
        return len(text)

    @property
    def idle(self) -> bool:
        """Whether the terminal has taken all."""
        return self._aside.idle

    def finish(self) -> None:
        """Wait until all is written."""
        with contextlib.suppress(OSError):
            self._aside.close()


class LiveReporter:
    """A run as it goes on, on standard error: see `live_view`. At its end the trials remain.

    Off a terminal it keeps quiet. It never waits for the terminal but at the end. Use as a context
    manager. `ending`: what Ctrl-C would do, as a sentence.
    """

    def __init__(self, console: Console, ending: str = "") -> None:
        self._console = console
        self._view = View(ending)
        # Drawn by whoever reports, so that nothing is sent while nothing changes.
        self._live = Live(self._view, console=console, auto_refresh=False, transient=True)
        self._drawn = 0.0

    def __enter__(self) -> Self:
        self._terminal = cast(TextIO, self._console.file)
        self._beside = _Beside(self._terminal)
        self._console.file = cast(TextIO, self._beside)
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()
        trials = self._view.trials
        if trials and self._console.is_terminal:
            narrow = self._console.width < NARROW
            self._console.print(table(trials, trials[0].record.requested, narrow))
        self._beside.finish()
        self._console.file = self._terminal

    def step(self, text: str) -> None:
        """A new part of the run begins."""
        if self._console.is_terminal:
            self._console.print(f"[bold]{escape(text)}[/]")

    def notice(self, text: str) -> None:
        """Something that must be shown, terminal or not."""
        self._console.print(text, markup=False)

    def progress(self, what: str, share: float, left_s: float | None) -> None:
        """`share` (0 to 1) of `what` is done; `left_s`: seconds left of the whole run."""
        self._view.what, self._view.share, self._view.left_s = what, share, left_s
        self._draw()

    def trial(self, record: TrialRecord, gain: Estimate | None, holds: bool) -> None:
        """A trial has ended."""
        self._view.trials.append(Shown(record, gain, holds))
        self._draw()

    def _draw(self) -> None:
        now = time.monotonic()
        # Each drawing goes up by the lines of the one before, so none may be left out half way.
        if not self._console.is_terminal or not self._beside.idle:
            return
        if now - self._drawn >= PERIOD_S:
            self._drawn = now
            self._live.refresh()
