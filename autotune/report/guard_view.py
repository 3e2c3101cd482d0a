"""What is on the terminal while a sync or a check is guarded: the p99 of the last minutes beside
its ceiling, the pace, and the end that is promised."""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotune.guard.window import Window
from autotune.measure.foreground import PROBE
from autotune.quantities import KIB, in_brackets, show_latency, show_moment, show_rate, show_seconds
from autotune.report.display import Display, LastLine, one_line
from autotune.report.spark import bars, spark, spark_under

NARROW = 76
"""Columns below which there is no bar, and nothing that can be done without."""
MEMORY = 200
"""Windows: as many as the widest terminal has columns for."""
LEAST_SPARK = 4
ENDING = "Ctrl-C lets the sync go on unguarded; its limits go back."
CHECK = "check"
CHECK_ENDING = "Ctrl-C stops it; the next `autotune check` goes on from there."


@dataclass
class GuardView:
    """A guarded sync, as rich draws it. `ending`: what Ctrl-C does.
    `idle`: what is shown while none is there. `waits`: what a check waits for, and how far it
    is."""

    device: str
    ceiling_ns: float
    ending: str = ENDING
    idle: str = ""
    windows: deque[Window] = field(default_factory=lambda: deque(maxlen=MEMORY))
    waits: tuple[str, float] | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        narrow, lines = options.max_width < NARROW, list[RenderableType]()
        if self.waits is not None:
            why, share = self.waits
            lines = [self._done(CHECK, share, narrow), one_line(f"waiting: {why}")]
        elif self.windows:
            lines = list(self._lines(options, console.encoding))
        elif self.idle:
            yield one_line(self.idle, "dim")
        if lines:
            # What becomes of the sync comes first, which a narrow one has room for.
            lines.append(LastLine(self.ending.partition(";")[0] if narrow else self.ending))
        # The cursor stands below.
        yield from lines[: max(1, console.height - 1)]

    def _lines(self, options: ConsoleOptions, encoding: str) -> Iterator[Table | Text]:
        now, narrow = self.windows[-1], options.max_width < NARROW
        yield self._done(now.action, now.share, narrow)
        rows = {"p99": self._p99(now, narrow), "sync": _pace(now, narrow)}
        room = max(LEAST_SPARK, options.max_width - max(map(len, rows.values())) - 8)
        for label, words in rows.items():
            drawn = self._spark(label, room, encoding)
            yield one_line(Text.assemble(f"{label:4}  ", drawn, f"  {words}"))
        for label, words in _end(now, narrow):
            yield one_line(f"{label:4}  {words}")
        if now.out_of_reach:
            yield one_line("No speed keeps the p99 under the ceiling.", "bold")

    def _done(self, action: str, share: float, narrow: bool) -> Table | Text:
        if narrow:
            done = "checked" if action == CHECK else "synced"
            return one_line(f"{self.device}: {share:.1%} is {done}", "bold")
        grid = Table.grid(padding=(0, 1))
        for _ in range(3):
            grid.add_column(no_wrap=True, overflow="ellipsis")
        what = action.capitalize() or "Sync"
        bar = ProgressBar(total=1.0, completed=share, width=24)
        grid.add_row(Text(f"{what} of {self.device}", style="bold"), bar, Text(f"{share:.1%}"))
        return grid

    def _spark(self, label: str, room: int, encoding: str) -> Text:
        known = list(self.windows)[-room:]
        if label == "sync":
            rates = [window.sync_bytes_per_s for window in known]
            return Text(spark_under(rates, max(*rates, 1.0), encoding))
        p99s = [window.p99_ns for window in known]
        if not math.isfinite(self.ceiling_ns):
            return Text(spark(p99s, encoding))
        drawn = Text(spark_under(p99s, self.ceiling_ns, encoding))
        drawn.highlight_words([bars(encoding)[-1]], "red")
        return drawn

    def _p99(self, now: Window, narrow: bool) -> str:
        if now.source == "none":
            return "no requests"
        seen = "measuring" if now.p99_ns is None else show_latency(now.p99_ns)
        if math.isfinite(self.ceiling_ns):
            seen += f", ceiling {show_latency(self.ceiling_ns)}"
        if narrow:
            return seen
        users = "" if now.foreground_iops is None else f", {_iops(now)}"
        return seen + users + ", of small test reads" * (now.source == PROBE)


def _iops(now: Window) -> str:
    return f"{now.foreground_iops:.0f} requests/s"


def _pace(now: Window, narrow: bool) -> str:
    rate = show_rate(now.sync_bytes_per_s)
    if narrow:
        return rate
    if now.source == "none":
        return f"{rate} of each member, full speed"
    return f"{rate} of each member, limit {show_rate(now.sync_speed_max_kib * KIB)}"


def _end(now: Window, narrow: bool) -> Iterator[tuple[str, str]]:
    """When it will be over, how sure that is, and what was promised of it."""
    if now.left_s is None:
        yield "left", "not known yet"
    elif now.left_low_s is None or now.left_high_s is None:
        yield "left", f"about {show_seconds(now.left_s)}"
    else:
        times = (now.left_s, now.left_low_s, now.left_high_s)
        left, low, high = map(show_seconds, times)
        if narrow or low == high:
            yield "left", left
            if low != high:
                yield "from", f"{low} to {high}"
        else:
            yield "left", f"{left} ({low} if all users leave, {high} if they stay)"
        end, soonest, latest = (show_moment(now.time_s + seconds, now.time_s) for seconds in times)
        # A minute may end within a second.
        yield "end", f"{end}{in_brackets(soonest, latest) if low != high else ''}"
    if now.finish_s is not None:
        yield "deadline", f"{show_moment(now.finish_s, now.time_s)}: {_promise(now)}"


def _promise(now: Window) -> str:
    """What is to be said of the deadline."""
    assert now.finish_s is not None
    if now.impossible:
        lost = now.needed_kib is None
        return "cannot be met even at full speed" if lost else "cannot be met under the ceiling"
    if now.needed_kib is None or now.left_high_s is None:
        return "not known yet whether it can be met"
    if now.time_s + now.left_high_s > now.finish_s:
        return f"at risk, {show_rate(now.needed_kib * KIB)} needed"
    return f"can be met at {show_rate(now.needed_kib * KIB)}"


class GuardDisplay(Display):
    """A guard or a check as it goes on, on standard error."""

    def __init__(
        self,
        console: Console,
        device: str,
        ceiling_ns: float,
        ending: str = ENDING,
        idle: str = "",
    ) -> None:
        self._view = GuardView(device, ceiling_ns, ending, idle)
        super().__init__(console, self._view)

    def window(self, window: Window) -> None:
        """Some seconds have passed."""
        self._view.windows.append(window)
        self._view.waits = None
        self.draw()

    def waits(self, why: str, share: float) -> None:
        """A check, done so far, does not go on yet."""
        self._view.waits = (why, share)
        self.draw()

    def over(self) -> None:
        """The sync has ended, or is not guarded any more."""
        self._view.windows.clear()
