"""How text meets the terminal: wrapped between words there, one line each in a pipe."""

import contextlib
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, TextIO

from autotune.suggested import in_folder

if TYPE_CHECKING:
    from rich.console import Console


def open_what_is_closed() -> None:
    """Let those of the three standard streams lead nowhere that were closed by whoever started
    this: a file that is opened next would get the number of one, and messages with it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # It gets the lowest number that is free.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or os.fdopen(0, "r", closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


LOG_FORMAT = "AUTOTUNE_LOG_FORMAT"
"""The environment variable, which other processes of a command inherit."""
LOG_FORMATS = ("text", "json")


def choose_log_format(words: Sequence[str]) -> None:
    """Have standard error in the form that the words of a command line or the environment ask
    for: whatever is said there from now on."""
    for word, following in pairwise((*words, "")):
        name, _, value = word.partition("=")
        if name == "--log-format":
            os.environ[LOG_FORMAT] = value or following
    if os.environ.get(LOG_FORMAT) == "json":
        from autotune.cli.json_lines import JsonLines

        sys.stderr = JsonLines(sys.stderr)


def say(text: str, stream: TextIO | None = None) -> None:
    """Print each line of the text, on a terminal wrapped between words; to stdout by default.
    Names in it may be a stranger's, so they move no cursor."""
    stream = stream or sys.stdout
    lines = in_folder(text).splitlines()
    if not all(map(str.isprintable, lines)):
        from autotune.untrusted import harmless

        lines = [harmless(line) for line in lines]
    print("\n".join(fitting(lines, stream)), file=stream)


def fitting(lines: Sequence[str], stream: TextIO) -> list[str]:
    """The lines as a stream shows them: on a terminal wrapped between words."""
    if not stream.isatty():
        return list(lines)
    width = shutil.get_terminal_size().columns
    return [line for part in lines for line in _wrapped(part, width)]


def _wrapped(line: str, width: int) -> list[str]:
    """A path or a command is never cut inside: it may be longer than the terminal is wide."""
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def notice(text: str) -> None:
    """Say something that is not the answer, on standard error. A terminal that is gone ends
    nothing."""
    with contextlib.suppress(OSError):
        say(f"autotune: {text}", sys.stderr)


def console(stderr: bool = False) -> "Console":
    """Rich's console: sentences wrap on a terminal alone, and NO_COLOR means no styles at all."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        soft_wrap=not stream.isatty(),
        highlight=False,
        # Names of strangers stand in the texts.
        markup=False,
    )
