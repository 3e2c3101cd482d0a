"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

StateDir = Annotated[
    Path,
    typer.Option(envvar="AUTOTUNE_STATE_DIR", help="Where runs, journals and profiles are kept."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
STATE_DIR = Path("/var/lib/autotune")
