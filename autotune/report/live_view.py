"""What is on the terminal while a run goes on: a few lines that fit it, drawn again and again."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotune.problem.figure import Estimate
from autotune.problem.objective import Figures
from autotune.problem.setting import Setting, setting_key, show_setting
from autotune.problem.trial import ROLES, Status
from autotune.quantities import show_latency, show_seconds
from autotune.report.display import LastLine, WholeItems, one_line
from autotune.report.spark import spark
from autotune.report.tables import show_span
from autotune.results.proof import mean
from autotune.store import TrialRecord

ORIGINAL = "the original settings"
NOTE = "overall: each trial by itself, beside the first; what follows is by all of them."
Show = Callable[[Setting, Setting], str]
"""A setting in one line, beside the baseline's."""
NARROW = 76
"""Columns below which there is no bar, and no column that can be done without."""
MOST_ROWS = 8
ROUGH_S = 300.0
"""From so much time left on, whole minutes are enough."""
BAR = 12
"""Columns of the bar: the longest of names and times fit beside it in 80."""
ALIKE = 1.3
"""Times left that differ by less are told as one."""
OTHER_LINES = 8
"""Beside the rows of trials, and the line of the cursor."""


@dataclass(frozen=True)
class Shown:
    """A trial that has ended, and its gain if it has one."""

    record: TrialRecord
    gain: Estimate | None

    def holds(self, limits_ns: Mapping[str, float]) -> bool:
        """Whether it was measured in full and is within these ceilings."""
        figures = self.record.figures
        over = (
            name for name, ns in limits_ns.items() if name in figures and figures[name].value > ns
        )
        return self.record.status is Status.COMPLETE and not any(over)


@dataclass
class View:
    """The state of a run, as rich draws it. `ending`: what Ctrl-C would do; "" if that is not to
    be said. `compared_with`: the other side, in words. `show`: how a setting is said. `limits_ns`:
    the ceilings of p99s, once they are known."""

    ending: str = ""
    what: str = ""
    share: float = 0.0
    left_s: float | None = None
    most_s: float | None = None
    trials: list[Shown] = field(default_factory=list)
    compared_with: str = ORIGINAL
    show: Show = show_setting
    limits_ns: dict[str, float] = field(default_factory=dict)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow = options.max_width < NARROW
        yield self._doing(narrow)
        if self.trials:
            yield self._best()
            yield from self._sparks(options.max_width, console.encoding)
            if self.limits_ns:
                yield self._ceilings()
            rows = max(1, min(MOST_ROWS, console.height - OTHER_LINES))
            yield table(self.trials[-rows:], self._baseline, narrow, self.show, self.limits_ns)
        if self.ending:
            yield LastLine(self.ending)

    @property
    def _baseline(self) -> Setting:
        return self.trials[0].record.requested

    def _doing(self, narrow: bool) -> Table | Text:
        left = "" if self.left_s is None else f"{show_left(self.left_s, self.most_s)} left"
        if narrow:
            return one_line(", ".join(filter(None, (left.removeprefix("about "), self.what))))
        grid = Table.grid(padding=(0, 1), expand=True)
        # What is measured gives way to the time left.
        grid.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        grid.add_column(width=BAR)
        grid.add_column(no_wrap=True)
        bar = ProgressBar(total=1.0, completed=self.share, width=BAR)
        grid.add_row(Text(self.what), bar, Text(left))
        return grid

    def _best(self) -> Text | WholeItems:
        good = [
            t for t in self.trials if t.gain and t.holds(self.limits_ns) and not _is_original(t)
        ]
        tried: dict[object, list[Figures]] = {}
        for each in good:
            if each.gain:
                key = setting_key(each.record.requested)
                tried.setdefault(key, []).append({"gain": each.gain})
        gains = {key: mean(found)["gain"] for key, found in tried.items()}
        best = max(gains, key=lambda key: gains[key].value, default=None)
        original, scatter = self._originals()
        if best is None or gains[best].value <= original:
            return one_line(f"best so far: {self.compared_with}")
        setting = next(r for each in good if setting_key(r := each.record.requested) == best)
        spread = math.hypot(gains[best].spread, scatter)
        gain = Estimate(gains[best].value / original, spread)
        shown = self.show(setting, self._baseline)
        span = show_span(*gain.interval)
        return WholeItems(f"best so far ×{gain.value:.2f} ({span}): {shown}", "bold")

    def _originals(self) -> tuple[float, float]:
        """What the original settings show by now beside their first trial, and how that scatters
        (log scale): the array may drift."""
        logs = [
            math.log(each.gain.value) for each in self.trials if each.gain and _is_original(each)
        ]
        return math.exp(fmean(logs or [0.0])), stdev(logs) if len(logs) > 1 else 0.0

    def _ceilings(self) -> WholeItems:
        # That of the p99 above it first: a narrow terminal has room for one or two.
        names = sorted(self.limits_ns, key=lambda name: name != p99_name(self.trials))
        said = ", ".join(f"{name} {show_latency(self.limits_ns[name])}" for name in names)
        return WholeItems(f"ceiling{'s' * (len(names) > 1)}: {said}")

    def _sparks(self, width: int, encoding: str) -> Sequence[Text]:
        """How throughput and p99 went from trial to trial."""
        name = p99_name(self.trials)
        gains = [each.gain.value if each.gain else None for each in self.trials]
        tails = [
            found.value if name and (found := each.record.figures.get(name)) else None
            for each in self.trials
        ]
        lines = []
        wide = max(len("overall"), len(name))
        for label, values, show in (
            ("overall", gains, lambda value: f"×{value:.2f}"),
            (name, tails, show_latency),
        ):
            known = [value for value in values if value]
            if known:
                ends = " to ".join(dict.fromkeys((show(min(known)), show(max(known)))))
                room = max(4, width - wide - len(ends) - 4)
                line = spark(values[-room:], encoding)
                lines.append(one_line(f"{label:{wide}}  {line}  {ends}"))
        return lines


def show_left(least_s: float, most_s: float | None) -> str:
    """`8 to 15 min`, or `about 8 min` if both are much the same."""
    if most_s is None or most_s < ALIKE * least_s:
        return f"about {show_about((least_s + (most_s or least_s)) / 2)}"
    if most_s >= ROUGH_S and least_s >= 60:
        least_s = 60 * round(least_s / 60)
    least, most = show_about(least_s), show_about(most_s)
    if least == most:
        return f"about {most}"
    short, unit = least.removesuffix(" min"), most.removesuffix(" min")
    return f"{short if unit.isdecimal() and short.isdecimal() else least} to {most}"


def show_about(seconds: float) -> str:
    """`8 min`, `1 min 40 s`: no more digits than an estimate has."""
    step = 60 if seconds >= ROUGH_S else 10
    return show_seconds(step * round(seconds / step)) if seconds >= step else show_seconds(seconds)


def p99_name(trials: Sequence[Shown]) -> str:
    """The p99 that a narrow table has room for: that under the last phase's load."""
    names = [name for each in trials for name in each.record.figures if name.endswith(".p99")]
    return list(dict.fromkeys(names))[-1] if names else ""


def table(
    trials: Sequence[Shown],
    baseline: Setting,
    narrow: bool,
    show: Show,
    limits_ns: Mapping[str, float],
) -> Table:
    """A line a trial, cut off at the right; without what a narrow terminal has no room for."""
    name = p99_name(trials)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", expand=True)
    grid.add_column("trial", justify="right", no_wrap=True)
    if not narrow:
        grid.add_column("role", no_wrap=True)
    grid.add_column("overall", justify="right", no_wrap=True)
    if name and not narrow:
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_column("setting", ratio=1, no_wrap=True, overflow="ellipsis")
    tried = Counter(pair for each in trials for pair in each.record.requested.items())
    for each in trials:
        record = each.record
        # What few have, first: the end of the line may be cut off.
        requested = dict(sorted(record.requested.items(), key=lambda pair: tried[pair]))
        complete = record.status is Status.COMPLETE
        # The ceilings come from the original settings, or their breaking one is told at the start.
        holds = each.holds(limits_ns) or (complete and _is_original(each))
        overall = f"×{each.gain.value:.2f}" if each.gain else "–"
        setting = show(requested, baseline)
        if complete and not holds:
            setting = f"over a ceiling: {setting}"
        if not complete:
            overall = record.status.value
            setting = ": ".join(filter(None, (record.reason, setting)))
        cells = [str(record.number)]
        if not narrow:
            cells.append(ROLES.get(record.role, record.role))
        cells.append(overall)
        if name and not narrow:
            shown = record.figures.get(name)
            cells.append(show_latency(shown.value) if shown else "–")
        style = "" if holds else "dim"
        grid.add_row(*map(Text, cells), WholeItems(setting), style=style)
    return grid


def _is_original(each: Shown) -> bool:
    return each.record.role in ("baseline", "confirm-baseline", "long-baseline")
