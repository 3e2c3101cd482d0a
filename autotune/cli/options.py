"""Options and messages that several commands share."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.terminal import say

StateDir = Annotated[
    Path,
    typer.Option(
        metavar="DIR", envvar="AUTOTUNE_STATE_DIR", help="Folder of runs, journals and profiles."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Persist = Annotated[
    bool,
    typer.Option("--persist", help="Have udev set the values again at each boot and assembly."),
]
STATE_DIR = Path("/var/lib/autotune")


def print_persisted(files: Iterable[Path], device: str) -> None:
    """Say which files were written to keep the values, and how to undo that."""
    for path in files:
        say(f"Written: {path}")
    if files:
        say(f"It comes back at each assembly, until `autotune unpersist {device}`.")
