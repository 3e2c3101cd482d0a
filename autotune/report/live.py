"""A run as it goes on, on a terminal; nothing when nobody watches."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from autotune.problem.figure import Estimate
from autotune.problem.setting import Setting
from autotune.problem.trial import ROLES, Status
from autotune.quantities import show_seconds
from autotune.report.tables import show_setting
from autotune.store import TrialRecord

NARROW = 76
"""Columns below which progress is shown without a bar."""


class LiveReporter:
    """Progress with the time left, and a line for each trial, on standard error.

    Off a terminal it keeps quiet. Use as a context manager.
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
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

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
