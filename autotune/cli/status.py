"""`autotune status`."""

import typer

from autotune.cli.options import STATE_DIR, DeviceOrAll, Json, StateDir
from autotune.cli.terminal import console
from autotune.suggested import NO_ARRAYS, in_folder


def status(
    device: DeviceOrAll = None,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Say whether each array has the values of its profile. Changes nothing.

    Exit code 1 if a value differs or something else needs attention, such as a check that is
    overdue or what a killed run has left; else 0, also where no profile is in force.
    """
    import json
    from dataclasses import replace

    from autotune.checking.overdue import not_checked
    from autotune.deploy.status import status as look
    from autotune.deploy.undo import tell_unrecorded
    from autotune.preflight.leftovers import abandoned
    from autotune.preflight.syncs import held
    from autotune.report import status as report
    from autotune.report.lines import print_indented
    from autotune.safety.applied import left_on_disks
    from autotune.safety.other_folders import left_elsewhere
    from autotune.service.unchecked import kept_from_work
    from autotune.system.array import find_array, list_arrays
    from autotune.system.sync import real_sync

    arrays = [find_array(device)] if device is not None else list_arrays()
    nobody, found = not_checked(), []
    for array in arrays:
        # Whatever bounds a recovery, be it a check that is paused with its guardian.
        bound = held(array) if real_sync(array) or array.sync_action == "idle" else None
        seen, more = look(array, state_dir), filter(None, (nobody.get(array.device), bound))
        found.append(replace(seen, faults=(*seen.faults, *more)))
    left = kept_from_work() + left_elsewhere(state_dir)
    if device is None:
        uuids = {array.uuid for array in arrays}
        left += left_on_disks(state_dir, uuids)
        left += abandoned(state_dir, uuids)
        left += tell_unrecorded(state_dir)
    left = [in_folder(text) for text in left]
    good = all(each.good for each in found) and not left
    if as_json:
        documents = [report.document(each) for each in found]
        print(json.dumps({"ok": good, "arrays": documents, "left": left}, indent=2))
    else:
        out = console()
        if not found:
            out.print(NO_ARRAYS)
        for each in found:
            report.print_status(out, each)
        for text in left:
            print_indented(out, f"wrong: {text}", 0)
    if not good:
        raise typer.Exit(1)
