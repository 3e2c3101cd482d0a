"""What is drawn on a terminal again and again; nothing when nobody watches."""

import contextlib
import io
import sys
import time
from collections.abc import Iterator
from typing import Self, TextIO, cast

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.measure import Measurement
from rich.text import Text

from autotune.background import Background, write

PERIOD_S = 0.25
"""Not drawn more often, whatever is reported: an ssh may be slow."""
ECHO = len("^C")
STUCK_S = 1.0
"""A terminal that takes nothing for so long is not waited for."""


class _Beside(io.TextIOBase):
    """A terminal to which a thread of its own writes: one that takes nothing any more (Ctrl-S, a
    stalled ssh) keeps nobody from looking after the array. Nor does one that is gone."""

    def __init__(self, terminal: TextIO) -> None:
        self._terminal, self._background = terminal, Background()
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
            self._background(lambda: write(self._terminal, text))
        return len(text)

    @property
    def idle(self) -> bool:
        """Whether the terminal has taken all."""
        return self._background.idle

    def finish(self) -> None:
        """Wait until all is written."""
        with contextlib.suppress(OSError):
            self._background.close()


class Display:
    """A view that is drawn on standard error again and again, and gone at the end.

    Off a terminal it keeps quiet. It never waits for the terminal but at the end. Use as a context
    manager.
    """

    def __init__(self, console: Console, view: RenderableType) -> None:
        self._console, self._drawn_view = console, view
        self._live = self._anew()
        self._drawn = 0.0

    def _anew(self) -> Live:
        # Drawn by whoever reports, so that nothing is sent while nothing changes. What goes to a
        # file or a pipe goes there as it is.
        return Live(
            self._drawn_view,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )

    def __enter__(self) -> Self:
        self._terminal = cast(TextIO, self._console.file)
        self._beside = _Beside(self._terminal)
        self._console.file = cast(TextIO, self._beside)
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()
        self._say_last()
        self._beside.finish()
        self._console.file = self._terminal

    def _say_last(self) -> None:
        """Print what is to remain."""

    @contextlib.contextmanager
    def away(self) -> Iterator[None]:
        """Meanwhile it is not on the terminal, so that something else may be written there."""
        self._live.stop()
        self._settle()
        try:
            yield
        finally:
            self._live = self._anew()
            if self._console.is_terminal:
                self._live.start()

    def _settle(self) -> None:
        until = time.monotonic() + STUCK_S
        while not self._beside.idle and time.monotonic() < until:
            time.sleep(0.01)

    def draw_at_rest(self) -> None:
        """The view has changed, and will not do so again for long."""
        self._settle()
        self._drawn = 0.0
        self.draw()

    def draw(self) -> None:
        """The view has changed."""
        now = time.monotonic()
        # Each drawing goes up by the lines of the one before, so none may be left out half way.
        if not self._console.is_terminal or not self._beside.idle:
            return
        if now - self._drawn >= PERIOD_S:
            self._drawn = now
            self._live.refresh()


def one_line(text: str | Text, style: str = "") -> Text:
    """A line that never becomes two."""
    found = text if isinstance(text, Text) else Text(text, style=style)
    found.no_wrap, found.overflow = True, "ellipsis"
    return found


class LastLine:
    """A line that leaves room for the `^C` that a terminal shows: if that made a line of its own,
    what is drawn next would be a line too low, and one would stay."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(
            one_line(self._text, "dim"), options.update_width(max(1, options.max_width - ECHO))
        )


class WholeItems:
    """A line of items, such as settings, with as many of them as fit: none is cut inside, since
    part of a number is another number."""

    def __init__(self, text: str, style: str = "") -> None:
        self._text, self._style = text, style

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        text, items = self._text, self._text.split(", ")
        while cell_len(text) > options.max_width and len(items) > 1:
            items.pop()
            text = ", ".join((*items, "…"))
        yield one_line(text, self._style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(1, max(1, cell_len(self._text)))
