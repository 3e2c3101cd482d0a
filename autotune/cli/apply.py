"""`autotune apply` and `autotune unpersist`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import (
    STATE_DIR,
    Device,
    Json,
    Persist,
    StateDir,
    persist_applied,
    print_persisted,
)
from autotune.cli.terminal import console, notice, say


def apply(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            autocompletion=complete.profiles,
            help="The profile: a JSON file, or the name of a proven one (`autotune profiles`).",
        ),
    ],
    device: Device,
    persist: Persist = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also set harmful values, until the next reboot.")
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Apply a profile to an array, and read back what took effect.

    It lasts until the array is stopped or the machine restarts; with --persist, over reboots too.

    Example: autotune apply md0-run1 /dev/md0 --persist
    """
    import json

    from autotune.deploy.apply import apply_profile
    from autotune.deploy.catalogue import find_profile
    from autotune.deploy.rescale import misfits
    from autotune.errors import RefusalError, UsageError
    from autotune.preflight.checks import require_root
    from autotune.report.tables import show_value_change
    from autotune.system.array import find_array

    if force and persist:
        raise UsageError(
            "Harmful values that --force sets cannot be persisted; leave out --force or --persist."
        )
    require_root()
    wanted, array = find_profile(profile, state_dir, device), find_array(device)
    for text in misfits(wanted.proven_on, wanted.knobs, array):
        raise RefusalError(f"{text} `autotune run {device}` finds what is right for it.")
    if persist:
        from autotune.deploy.persist import check

        check(array, wanted)
    before, after = apply_profile(wanted, device, state_dir, notice, force=force)
    if not wanted.evidence.confirmed:
        notice(
            f"The profile {wanted.name} is not proven: no measurements in turn with the original "
            f"settings have shown that it is better. `autotune import {profile} --device {device}` "
            "measures it."
        )
    if not as_json:
        out = console()
        for knob, value in after.items():
            out.print(show_value_change(out, knob, before[knob], value).rstrip(), highlight=False)
        out.print(f"Applied to {device}.")
    document = {"device": device, "before": before, "after": after}
    files: tuple[Path, ...] = ()
    if persist:
        files = persist_applied(after, device, state_dir, {**document, "persisted": []})
    if as_json:
        print(json.dumps({**document, "persisted": [str(f) for f in files]}, indent=2))
    else:
        print_persisted(files, device)


def unpersist(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE|UUID",
            autocompletion=complete.devices,
            help="The array, or its UUID if it is gone.",
        ),
    ],
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Remove what --persist has written. What is set now stays until the array is stopped."""
    import json

    from autotune.deploy.persist import remove_rule
    from autotune.deploy.persist import unpersist as remove
    from autotune.deploy.persisted import changed_by_hand, persisted_uuids
    from autotune.deploy.udevd import tell_exported, tell_udev
    from autotune.deploy.undo import record, refuse_unreadable, stopped
    from autotune.errors import RefusalError
    from autotune.preflight.checks import require_root
    from autotune.system.array import find_uuid, list_arrays

    require_root()
    uuid = find_uuid(device)
    if uuid not in persisted_uuids():
        raise RefusalError(f"Nothing is persisted for {device}.")
    refuse_unreadable(stopped(uuid))
    # What joins or is assembled until then is still set, and what was there before is recorded.
    if text := changed_by_hand(uuid):
        notice(text)
    removed = remove_rule(uuid)
    tell_udev(next((a for a in list_arrays() if a.uuid == uuid), None), notice)
    array = next((array for array in list_arrays() if array.uuid == uuid), None)
    if theirs := record(array or stopped(uuid), state_dir):
        notice(f"This stays: {'; '.join(theirs)}")
    removed += remove(uuid)
    if array is not None:
        tell_exported(uuid, notice)
    if as_json:
        print(json.dumps({"uuid": uuid, "removed": [str(path) for path in removed]}, indent=2))
        return
    for path in removed:
        print(f"Removed {path}.")
    if array is None:
        say("What it has set on disks stays until a reboot; `autotune restore --all` ends that.")
    else:
        say(
            f"The values stay as they are until {array.device} is stopped, those of its disks "
            f"until a reboot. `autotune restore {array.device}` puts them back now."
        )
