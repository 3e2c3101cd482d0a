"""What a design found, on a terminal."""

from rich.console import Console
from rich.text import Text

from autotune.design.shape import Shape
from autotune.problem.setting import Setting
from autotune.report import design_words as words
from autotune.report.design_words import Document
from autotune.report.text_table import TextTable


def print_design(console: Console, design: Document) -> None:
    """The finalists side by side, the answer, and the commands that make it."""
    console.print(_finalists(design))
    console.print()
    console.print(_figures(design))
    console.print()
    take, why = words.answer(design)
    console.print(Text.assemble((take, "bold"), why))
    for text in words.reasons(design):
        console.print(Text(f"  {text}" if text.startswith("Not ") else text))
    for text in (*words.costs(design), words.rebuild(design)):
        console.print(Text(text))
    console.print()
    for title, lines in words.commands(design):
        console.print(title)
        for line in lines:
            console.print(f"  {line}", soft_wrap=True, highlight=False)
    if words.in_lab(design):
        console.print("These commands are for inside the lab, whose disks are new at each start.")


def _finalists(design: Document) -> TextTable:
    table = TextTable(*words.FINALIST_HEADS, right=[2, 3], whole=[0, 2, 3])
    best = words.winner(design)["letter"]
    for row in words.finalist_rows(design):
        table.add_row(*map(Text, row), style="bold" if row[0] == best else "")
    return table


def _figures(design: Document) -> TextTable:
    heads = words.figure_heads(design)
    table = TextTable(*heads, right=range(1, len(heads)), whole=[0])
    for row in words.figure_rows(design):
        table.add_row(*(Text(cell, "red" if cell.endswith(words.OVER) else "") for cell in row))
    return table


def show_shape(setting: Setting, _default: Setting) -> str:
    """A shape in one line, as the live view takes it."""
    return str(Shape.of(setting))


def print_made(console: Console, design: Document) -> None:
    """What comes after the array was made."""
    device = design["device"]
    console.print(
        f"\n{device} is made, and its first sync runs: /proc/mdstat shows it, and `autotune "
        f"guard {device} --policy foreground` keeps it from disturbing. When it has ended and a "
        "filesystem is mounted, go on with:",
    )
    console.print(f"  {design['next']}", soft_wrap=True, highlight=False)
