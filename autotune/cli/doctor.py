"""`autotune doctor`."""

from typing import Annotated

import typer

from autotune.cli.options import STATE_DIR, Json, StateDir


def doctor(
    device: Annotated[str | None, typer.Argument(help="The array. [default: all]")] = None,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Say what prevents a run, and what earlier runs left. Changes nothing."""
    import json

    from autotune.errors import AutotuneError
    from autotune.preflight import leftovers
    from autotune.preflight.checks import check
    from autotune.safety.paths import open_journals
    from autotune.system.array import find_array, list_arrays
    from autotune.system.stack import read_stack

    arrays = [find_array(device)] if device else list_arrays()
    journals = {str(path): leftovers.describe(path) for path in open_journals(state_dir)}
    known = {folder for _, folders in journals.values() for folder in folders}
    findings = {}
    for array in arrays:
        stack = read_stack(array)
        found = check(array, stack) + leftovers.find(array, stack, known)
        findings[array.device] = found + leftovers.applied(array, state_dir)
    refused = journals or any(f.severity == "refuse" for found in findings.values() for f in found)
    if as_json:
        listed = {name: [vars(f) for f in found] for name, found in findings.items()}
        print(json.dumps({"arrays": listed, "open_journals": list(journals)}, indent=2))
        raise typer.Exit(1 if refused else 0)
    if not arrays:
        print("This machine has no md arrays.")
    for name, found in findings.items():
        print(f"{name}: {'nothing stands in the way' if not found else ''}".rstrip())
        for finding in found:
            print(f"  {'refuse' if finding.severity == 'refuse' else 'note'}: {finding.message}")
    for message, _ in journals.values():
        print(message)
    if refused:
        raise AutotuneError("Something stands in the way of a run; see above.")
