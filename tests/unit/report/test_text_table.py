"""Tables at every width: no word broken, no number cut off, nothing lost."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from autotune.report.text_table import TextTable

HEADS = ("run", "started", "array", "outcome")
ROWS = (
    ("1", "2026-11-22 23:10", "/dev/md0", "none of the 12 combinations tried looked better"),
    ("12", "2026-11-23 01:00", "/dev/md127", "better beyond noise"),
)


def _printed(width: int) -> list[str]:
    grid = TextTable(*HEADS, right=[0], whole=[1])
    for row in ROWS:
        grid.add_row(*map(Text, row))
    console = Console(file=io.StringIO(), width=width)
    console.print(grid)
    return str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", range(24, 120, 4))
def test_every_word_is_there_whole(width: int) -> None:
    lines = _printed(width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for row in ROWS:
        assert all(word in words for cell in row for word in cell.split())


def test_names_of_columns_wrap_where_their_cells_do_not() -> None:
    grid = TextTable("sectors that differ", "how it ended", whole=[0])
    grid.add_row("136 of 2", "it is over")
    console = Console(file=io.StringIO(), width=18)
    console.print(grid)
    lines = str(console.file.getvalue()).splitlines()  # type: ignore[attr-defined]
    assert "136 of 2  it is" in [line.rstrip() for line in lines]


def test_what_does_not_fit_side_by_side_becomes_paragraphs() -> None:
    lines = [line.rstrip() for line in _printed(36)]
    assert lines[:3] == ["run 1", "  started: 2026-11-22 23:10", "  array: /dev/md0"]
    assert [line.split()[0] for line in _printed(80)][:1] == ["run"]


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    out = io.StringIO()
    grid = TextTable("name")
    grid.add_row("a[/b] [bold]x")
    Console(file=out, width=40).print(grid)
    assert "a[/b] [bold]x" in out.getvalue()
