"""Tables that fit any terminal: no word is broken inside, and no number is cut off."""

from collections.abc import Collection

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GAP = 2


class TextTable:
    """Rows under column names. Where the columns do not fit side by side, each row becomes a
    paragraph, with a line for each cell.

    `right` are the columns whose cells stand at the right, `whole` those whose cells never wrap.
    """

    def __init__(
        self, *columns: str, right: Collection[int] = (), whole: Collection[int] = ()
    ) -> None:
        self._columns = [Text(name) for name in columns]
        self._right, self._whole = right, whole
        self._rows: list[tuple[list[Text], str]] = []

    def add_row(self, *cells: str | Text, style: str = "") -> None:
        """Cells that are left out at the end are empty."""
        texts = [Text(cell) if isinstance(cell, str) else cell for cell in cells]
        texts += [Text()] * (len(self._columns) - len(texts))
        self._rows.append((texts, style))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        widths = self._widths(options.max_width)
        if widths is None:
            yield from self._paragraphs()
            return
        table = Table(
            box=None,
            pad_edge=False,
            padding=(0, GAP, 0, 0),
            show_header=any(name.plain for name in self._columns),
            header_style="bold",
        )
        for number, (name, width) in enumerate(zip(self._columns, widths, strict=True)):
            justify = "right" if number in self._right else "left"
            table.add_column(name, justify=justify, width=width)  # type: ignore[arg-type]
        for cells, style in self._rows:
            table.add_row(*cells, style=style)
        yield table

    def _widths(self, most: int) -> list[int] | None:
        """The width of each column, the widest ones having given way; None if they do not fit."""
        columns = [
            [name, *(cells[number] for cells, _ in self._rows)]
            for number, name in enumerate(self._columns)
        ]
        widths = [
            max((_longest(cell.plain.splitlines()) for cell in c), default=0) for c in columns
        ]
        least = [
            max(
                _longest(name.plain.split()),
                *(
                    _longest(
                        cell.plain.splitlines() if number in self._whole else cell.plain.split()
                    )
                    for cell in cells
                ),
                0,
            )
            for number, (name, *cells) in enumerate(columns)
        ]
        room = most - GAP * (len(widths) - 1)
        while sum(widths) > room:
            givers = [n for n, width in enumerate(widths) if width > least[n]]
            if not givers:
                return None
            widths[max(givers, key=lambda n: widths[n])] -= 1
        return widths

    def _paragraphs(self) -> RenderResult:
        for cells, style in self._rows:
            first = Text.assemble(_label(self._columns[0]), cells[0])
            first.stylize(style or "bold")
            yield first
            for name, cell in zip(self._columns[1:], cells[1:], strict=True):
                if cell.plain:
                    # What wraps is set in by two more.
                    line = Text.assemble(_label(name, ":"), cell, style=style)
                    yield Padding(line, (0, 0, 0, 2))


def _label(name: Text, after: str = "") -> str:
    text = name.plain.replace("\n", " ")
    return f"{text}{after} " if text else ""


def _longest(texts: list[str]) -> int:
    return max(map(len, texts), default=0)
