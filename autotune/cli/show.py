"""`autotune show`: what an array is, and its knobs."""

from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.terminal import console
from autotune.suggested import NO_ARRAYS


def show(
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE",
            autocompletion=complete.devices,
            help="The array, such as /dev/md0. [default: all]",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show an array: members, what lies on it, and every setting with its range."""
    import json
    import sys

    from autotune.report.show import as_data, render, render_list
    from autotune.system.array import find_array, list_arrays

    arrays = [find_array(device)] if device is not None else list_arrays()
    if as_json:
        data = [as_data(array) for array in arrays]
        print(json.dumps(data[0] if device else data, indent=2))
        return
    if not arrays:
        print(NO_ARRAYS, file=sys.stderr)
    out = console()
    if len(arrays) > 1:
        render_list(arrays, out)
        out.print("\n`autotune show DEVICE` shows one of them, with its settings.")
    for array in arrays if len(arrays) == 1 else []:
        render(array, out)
