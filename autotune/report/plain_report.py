"""A report as text or as markdown, for a ticket."""

import io
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.report import (
    array_rows,
    array_words,
    design_words,
    run_rows,
    sentences,
    several_runs,
    tried_table,
)
from autotune.report.advice import advised
from autotune.report.text_table import TextTable

WIDTH = 80
"""Of text: a file knows no terminal. Only commands may be longer: they are there to be copied."""
FIGURE = re.compile(r"|[×<>–\d].{0,19}")
"""A cell that is not wrapped, such as `×1.20 (1.10 to 1.31)`."""
PICTURES = "Pictures are in the page alone (--format html)."
Rows = Sequence[Sequence[str]]


def text(documents: list[dict[str, Any]]) -> str:
    """For people who read it as it is."""

    def table(heads: Sequence[str], rows: Rows) -> str:
        if not rows:
            return ""
        figures = [n for n in range(len(heads)) if all(FIGURE.fullmatch(row[n]) for row in rows)]
        grid, out = TextTable(*heads, whole=figures), io.StringIO()
        for row in rows:
            grid.add_row(*(Text(cell) for cell in row))
        Console(file=out, width=WIDTH, color_system=None).print(grid)
        return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

    def said(words: str) -> str:
        return textwrap.fill(words, WIDTH, break_long_words=False, break_on_hyphens=False)

    return _whole(
        documents, lambda level, title: title, table, said, lambda command: f"  {command}"
    )


_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>#|&~$"})


def markdown(documents: list[dict[str, Any]]) -> str:
    """For GitHub and the like; what came from elsewhere is text, whatever it holds."""

    def plain(words: str) -> str:
        return words.translate(_SPECIAL)

    def said(words: str) -> str:
        parts = words.split("`")
        if len(parts) % 2 == 0:
            return plain(words)
        return "".join(f"`{part}`" if n % 2 else plain(part) for n, part in enumerate(parts))

    def table(heads: Sequence[str], rows: Rows) -> str:
        if not rows:
            return ""
        lines = [heads, ["---"] * len(heads), *([plain(cell) for cell in row] for row in rows)]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def code(command: str) -> str:
        return f"    {command}"

    return _whole(
        documents, lambda level, title: f"{'#' * level} {plain(title)}", table, said, code
    )


def _whole(
    documents: list[dict[str, Any]],
    head: Callable[[int, str], str],
    table: Callable[[Sequence[str], Rows], str],
    said: Callable[[str], str],
    code: Callable[[str], str],
) -> str:
    runs = [each for each in documents if each["kind"] == "run"]
    arrays = [each for each in documents if each["kind"] == "array"]
    parts = []
    if len(runs) > 1:
        first, *rows = several_runs.side_by_side(runs)
        parts += [head(1, several_runs.SIDE_BY_SIDE), table(first, rows)]
        parts.append(said(several_runs.note(runs)))
    for run in runs:
        parts.append(head(1, f"autotune: {run['device']}, run {run['run']}"))
        parts.append(said(sentences.verdict(run)))
        parts.append(said(sentences.where(run)))
        parts.append(table(run_rows.figure_heads(run), run_rows.figure_rows(run)))
        parts.append("\n".join(said(words) for words in sentences.terms(run)))
        parts += [said(words) for words in sentences.not_the_answer(run)]
        if run["changes"]:
            parts.append(table(run_rows.CHANGE_HEADS, run_rows.change_rows(run)))
        parts += [said(words) for words in (*sentences.costs(run), *sentences.remarks(run))]
        for each in run["commands"]:
            parts += [said(f"To {each['what']}:"), code(each["command"])]
        parts.append(head(2, "What was tried"))
        parts += [said(tried_table.note(run)), table(tried_table.heads(run), tried_table.rows(run))]
        parts.append(head(2, "Measured on"))
        parts.append(table(("", ""), run_rows.machine(run)))
        parts.append(head(2, "Not shown"))
        parts += [said(words) for words in (*run["missing"], PICTURES)]
    for array in arrays:
        parts.append(head(1, f"autotune: {array['device']}"))
        parts += _array(array, head, table, said, code)
    designs = [each for each in documents if each["kind"] == "design"]
    for design in designs:
        parts.append(head(1, f"autotune: {design['name']}, which array to make"))
        parts += _design(design, head, table, said, code)
    how = (
        *(sentences.HOW if runs else ()),
        *array_words.how(arrays),
        *(design_words.HOW if designs else ()),
    )
    parts += [
        head(1 if len(documents) > 1 else 2, "How these figures were measured"),
        *(said(words) for words in how),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _design(
    design: dict[str, Any],
    head: Callable[[int, str], str],
    table: Callable[[Sequence[str], Rows], str],
    said: Callable[[str], str],
    code: Callable[[str], str],
) -> list[str]:
    words = design_words
    parts = [said("".join(words.answer(design))), said(words.where(design))]
    parts.append(table(words.FINALIST_HEADS, words.finalist_rows(design)))
    parts += [said(text) for text in words.reasons(design)]
    for title, lines in words.commands_elsewhere(design):
        parts += [said(title), "\n".join(map(code, lines))]
    parts.append(head(2, "Each figure"))
    parts.append(table(words.figure_heads(design), words.figure_rows(design)))
    parts.append(said(words.rebuild(design)))
    parts.append(head(2, "What was tried"))
    parts += [said(text) for text in words.costs(design)]
    parts.append(table(words.TRIAL_HEADS, words.trial_rows(design)))
    parts.append(head(2, "Measured on"))
    return [*parts, table(("", ""), words.machine(design)), said(PICTURES)]


def _array(
    array: dict[str, Any],
    head: Callable[[int, str], str],
    table: Callable[[Sequence[str], Rows], str],
    said: Callable[[str], str],
    code: Callable[[str], str],
) -> list[str]:
    parts = [said(array_words.about(array)), table(("newest", ""), array_words.short(array))]
    forecast, advice = array["forecast"], array["advice"]
    if array["syncs"]:
        parts.append(head(2, "Guarded syncs"))
        parts.append(table(array_rows.SYNC_HEADS, array_rows.sync_rows(array)))
    if array["checks"]:
        parts.append(head(2, "Checks"))
        parts.append(table(array_rows.CHECK_HEADS, array_rows.check_rows(array)))
    if forecast is not None:
        parts.append(head(2, "Forecast"))
        parts.append(table(array_rows.FORECAST_HEADS, array_rows.forecast_rows(forecast)))
        parts += [said(words) for words in forecast["said"]]
    if array["passes"]:
        parts.append(head(2, "Passes of re-tuning"))
        parts.append(table(array_rows.PASS_HEADS, array_rows.pass_rows(array)))
    if array["runs"]:
        parts.append(head(2, "Runs"))
        parts.append(table(array_rows.RUN_HEADS, array_rows.run_rows(array)))
    if advice is not None:
        parts.append(head(2, "Advice"))
        if not advice["findings"]:
            parts.append(said(array_words.advice_line(advice)))
        for each in advice["findings"]:
            parts.append(head(3, each["name"]))
            parts += [said(each["seen"]), said(f"{each['cost']} ({each['source']})")]
            parts += ["\n".join(map(code, each["commands"])), said(advised(each))]
        parts += [said(words) for words in array_words.not_advised(advice)]
    parts.append(head(2, "Not shown"))
    return parts + [said(words) for words in (*array_words.not_shown(array), PICTURES)]
