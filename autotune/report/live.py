"""A run as it goes on, on a terminal."""

from collections.abc import Mapping

from rich.console import Console

from autotune.problem.figure import Estimate
from autotune.problem.setting import show_setting
from autotune.report.display import Display
from autotune.report.live_view import NARROW, NOTE, ORIGINAL, Show, Shown, View, table
from autotune.store import TrialRecord


class LiveReporter(Display):
    """A run as it goes on: see `live_view`. At its end the trials remain. `ending`: what Ctrl-C
    would do, as a sentence. `compared_with`: the other side, in words.
    `show`: how a setting is said."""

    def __init__(
        self,
        console: Console,
        ending: str = "",
        compared_with: str = ORIGINAL,
        show: Show = show_setting,
    ) -> None:
        self._view = View(ending, compared_with=compared_with, show=show)
        super().__init__(console, self._view)

    def _say_last(self) -> None:
        trials = self._view.trials
        if trials and self._console.is_terminal:
            narrow = self._console.width < NARROW
            baseline = trials[0].record.requested
            view = self._view
            self._console.print(table(trials, baseline, narrow, view.show, view.limits_ns))
            self._console.print(NOTE, style="dim")

    def step(self, text: str) -> None:
        """A new part of the run begins."""
        if self._console.is_terminal:
            self._console.print(text, style="bold")

    def notice(self, text: str) -> None:
        """Something that must be shown, terminal or not."""
        self._console.print(text)

    def progress(
        self, what: str, share: float, left_s: float | None, most_s: float | None = None
    ) -> None:
        """`share` (0 to 1) of `what` is done; `left_s`: seconds left of the whole run, the least
        of them if `most_s` is given."""
        self._view.what, self._view.share = what, share
        self._view.left_s, self._view.most_s = left_s, most_s
        self.draw()

    def ceilings(self, limits_ns: Mapping[str, float]) -> None:
        """How high p99s may be from now on."""
        self._view.limits_ns = dict(limits_ns)
        self.draw()

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        """A trial has ended."""
        self._view.trials.append(Shown(record, gain))
        self.draw()
