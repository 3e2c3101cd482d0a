"""Lines that are set in, so that their wrapped parts are too."""

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from autotune.suggested import in_folder
from autotune.untrusted import harmless


def print_indented(console: Console, text: str, indent: int = 2, style: str = "") -> None:
    """Print a sentence set in by so many columns; in a pipe it stays one line. Names of files and
    devices in it may be a stranger's, so they move no cursor."""
    text = harmless(in_folder(text))
    if console.soft_wrap:
        console.print(Text(" " * indent + text, style=style))
    else:
        console.print(Padding(Text(text, style=style), (0, 0, 0, indent)))
