"""`autotune profiles`."""

import sys
from typing import Annotated

import typer

from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import console


def profiles(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="One of them, or a file: shows the source of each value."
        ),
    ] = None,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """List profiles and starting points: shipped, in /etc/autotune/profiles, and own.

    Starting points are values that others have published: candidates for a run, not answers.
    """
    import json

    from autotune.deploy import catalogue
    from autotune.report import catalogue as report

    known, faults = catalogue.entries(state_dir)
    if name is not None:
        known = [entry for entry in known if entry.name == name] or [
            catalogue.Entry("file", name, catalogue.find(name, state_dir))
        ]
    if as_json:
        print(json.dumps([report.document(entry) for entry in known], indent=2))
    else:
        report.print_entries(console(), known, whole=name is not None)
    for fault in faults if name is None else ():
        print(f"autotune: {fault}", file=sys.stderr)
