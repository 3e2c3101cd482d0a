"""Options that several commands have, and what several say."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.terminal import say

StateDir = Annotated[
    Path,
    typer.Option(envvar="AUTOTUNE_STATE_DIR", help="Where runs, journals and profiles are kept."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Persist = Annotated[
    bool, typer.Option("--persist", help="Bring the values back at each assembly, by a udev rule.")
]
STATE_DIR = Path("/var/lib/autotune")


def print_persisted(files: Iterable[Path], device: str) -> None:
    """Say where what stays was written, and how to take it back."""
    for path in files:
        say(f"Written: {path}")
    if files:
        say(f"It comes back at each assembly, until `autotune unpersist {device}`.")
