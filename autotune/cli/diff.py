"""`autotune diff`."""

from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import console

SIDE = "A profile's file or name, the number of a run, or an array, such as /dev/md0."


def diff(
    a: Annotated[
        str, typer.Argument(metavar="A", autocompletion=complete.runs_or_profiles, help=SIDE)
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", autocompletion=complete.runs_or_profiles, help=SIDE)
    ],
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Compare two profiles, or a profile with an array as it is. Changes nothing.

    The exit code is 0 whether they differ or not; `same` in the JSON says which.
    """
    import json

    from autotune.deploy.compare import class_rows, knob_rows, side
    from autotune.report import compare as report

    left, right = side(a, state_dir), side(b, state_dir)
    knobs, classes = knob_rows(left, right), class_rows(left, right)
    if as_json:
        print(json.dumps(report.document(left, right, knobs, classes), indent=2))
    else:
        report.print_rows(console(), left, right, knobs, classes)
