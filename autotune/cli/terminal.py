"""How text meets the terminal: wrapped between words there, one line each in a pipe."""

import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def say(text: str, stream: TextIO | None = None) -> None:
    """Print each line of the text, on a terminal wrapped between words; to stdout by default."""
    stream = stream or sys.stdout
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        lines = [line for part in text.splitlines() for line in _wrapped(part, width)]
        text = "\n".join(lines)
    print(text, file=stream)


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
    """Say something that is not the answer, on standard error."""
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
    )
