"""A run as it goes on, on a terminal; nothing when nobody watches."""

import contextlib
import io
from types import TracebackType
from typing import Self, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from autotune.guard.aside import Aside, write
from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import ROLES, Status
from autotune.quantities import show_seconds
from autotune.report.tables import show_setting
from autotune.store import TrialRecord

NARROW = 76
"""Columns below which progress is shown without a bar."""


class _Beside(io.TextIOBase):
    """A terminal to which a thread of its own writes: one that takes nothing any more (Ctrl-S, a
    stalled ssh) keeps nobody from looking after the array. Nor does one that is gone."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal, self._aside = terminal, Aside()

    def isatty(self) -> bool:
        return self._terminal.isatty()

    def fileno(self) -> int:
        return self._terminal.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._terminal.encoding

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._aside(lambda: write(self._terminal, text))
        return len(text)

    def finish(self) -> None:
        """Wait until all is written."""
        with contextlib.suppress(OSError):
            self._aside.close()


class LiveReporter:
    """Progress with the time left, and a line for each trial, on standard error.

    Off a terminal it keeps quiet. It never waits for the terminal but at the end. Use as a context
    manager.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._baseline: Setting = {}
        # A narrow terminal has no room for a bar: what is said must not be cut off.
        self._narrow = console.width < NARROW
        left = TextColumn("{task.fields[left]}")
        wide = (TextColumn("{task.description}"), BarColumn(bar_width=24), left)
        self._progress = Progress(
            *((TextColumn("{task.description}"),) if self._narrow else wide),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=1.0, left="")

    def __enter__(self) -> Self:
        self._terminal = cast(TextIO, self._console.file)
        self._beside = _Beside(self._terminal)
        self._console.file = cast(TextIO, self._beside)
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()
        self._beside.finish()
        self._console.file = self._terminal

    def step(self, text: str) -> None:
        """A new part of the run begins."""
        if self._console.is_terminal:
            self._progress.console.print(f"[bold]{text}[/]")

    def notice(self, text: str) -> None:
        """Something that must be shown, terminal or not."""
        self._progress.console.print(text, markup=False)

    def progress(self, what: str, share: float, left_s: float | None) -> None:
        """`share` (0 to 1) of `what` is done; `left_s`: seconds left of the whole run."""
        left = "" if left_s is None else f"{show_seconds(left_s)} left"
        if self._narrow:
            what = f"{left}, {what}" if left else what
        elif left:
            left = f"at most {left}"
        self._progress.update(self._task, completed=share, description=what, left=left)

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        """A trial has ended."""
        if record.role == "baseline":
            self._baseline = record.requested
        if not self._console.is_terminal:
            return
        shown = f"×{gain.value:.2f}" if gain else "    –"
        if record.status is not Status.COMPLETE:
            shown = record.status.value
        what = show_setting(record.requested, self._baseline)
        role = ROLES.get(record.role, record.role)
        self._progress.console.print(
            f"{record.number:>3}  {role:<19} {shown:>6}  {what}", highlight=False
        )
