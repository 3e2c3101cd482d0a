"""`autotune apply`, `autotune restore` and `autotune unpersist`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import STATE_DIR, Json, Persist, StateDir, print_persisted
from autotune.cli.terminal import console, notice

if TYPE_CHECKING:
    from autotune.safety.restore import Outcome
    from autotune.system.array import Array


def apply(
    profile: Annotated[
        str, typer.Argument(help="The profile, a JSON file or a name in `autotune profiles`.")
    ],
    device: Annotated[str, typer.Argument(help="The array, such as /dev/md0.")],
    persist: Persist = False,
    force: Annotated[
        bool, typer.Option("--force", help="Set values that do harm too, until a reboot.")
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Apply a profile to an array, and read back what took effect.

    It holds until the array is stopped or the machine restarts; with --persist, for good.
    """
    import json

    from autotune.deploy.apply import apply_profile
    from autotune.deploy.catalogue import find_profile
    from autotune.deploy.rescale import misfits
    from autotune.errors import RefusalError, UsageError
    from autotune.problem.profile import load_profile
    from autotune.safety.paths import applied_profile_path
    from autotune.system.array import find_array

    if force and persist:
        raise UsageError("What has to be forced is not made to stay; leave out one of the two.")
    wanted, array = find_profile(profile, state_dir), find_array(device)
    for text in misfits(wanted.proven_on, wanted.knobs, array):
        raise RefusalError(f"{text} `autotune run {device}` finds what is right for it.")
    if persist:
        from autotune.deploy.persist import check
        from autotune.deploy.persist import persist as keep

        check(array, state_dir, wanted)
    before, after = apply_profile(wanted, device, state_dir, notice, force=force)
    files: tuple[Path, ...] = ()
    if persist:
        # That has the values of this array before.
        known = load_profile(applied_profile_path(state_dir, array.uuid))
        files = keep(known, find_array(device), state_dir, notice)
    if not wanted.evidence.confirmed:
        notice(
            f"The profile {wanted.name} was not confirmed: measured in turn with the original "
            "settings it was not shown to be better, so measure before you rely on it."
        )
    if as_json:
        document = {"device": device, "before": before, "after": after}
        print(json.dumps({**document, "persisted": [str(f) for f in files]}, indent=2))
        return
    out = console()
    for knob, value in after.items():
        out.print(f"  {knob:<20} {before[knob]!s:>12} → {value}", highlight=False)
    out.print(f"Applied to {device}.")
    print_persisted(files, device)


def unpersist(
    device: Annotated[
        str, typer.Argument(metavar="DEVICE|UUID", help="The array, or its UUID if it is gone.")
    ],
    as_json: Json = False,
) -> None:
    """Remove what --persist has written. What is set now stays until the array is stopped."""
    import json

    from autotune.deploy.persist import tell_udev
    from autotune.deploy.persist import unpersist as remove
    from autotune.errors import RefusalError
    from autotune.system.array import find_uuid, list_arrays

    uuid = find_uuid(device)
    removed = remove(uuid)
    if not removed:
        raise RefusalError(f"Nothing is persisted for {device}.")
    array = next((array for array in list_arrays() if array.uuid == uuid), None)
    tell_udev(array, notice)
    if as_json:
        print(json.dumps({"uuid": uuid, "removed": [str(path) for path in removed]}, indent=2))
        return
    for path in removed:
        print(f"Removed {path}.")
    if array is not None:
        print(f"The values stay as they are until {array.device} is stopped.")


def restore(
    device: Annotated[
        str | None, typer.Argument(help="Also undo what was applied to this array to stay.")
    ] = None,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Put back what a run that was killed has left; with DEVICE, undo an applied profile too."""
    import contextlib
    import json

    from autotune.errors import AutotuneError, RestoreError
    from autotune.safety.deferred_restore import put_back
    from autotune.safety.locks import lock
    from autotune.safety.paths import applied_path, clear_if_torn, open_journals
    from autotune.system.array import find_array

    outcomes, torn, failed = {}, [], []
    barred: list[str] = []
    paths = open_journals(state_dir)
    array = find_array(device) if device is not None else None
    applied = applied_path(state_dir, array.uuid) if array else None
    paths += [applied] if applied and applied.exists() else []
    for path in paths:
        try:
            if clear_if_torn(path):
                torn.append(path)
                barred.append(path.stem)
                continue
            with lock(array) if array and path == applied else contextlib.nullcontext():
                record, outcome = put_back(path)
            outcomes[f"{record.device} ({path.parent.name})"] = outcome
            if outcome.rebooted:
                barred.append(record.uuid)
        except FileNotFoundError:
            # Whoever held it has put everything back meanwhile.
            continue
        except (AutotuneError, OSError) as error:
            failed.append(str(error))
    if barred:
        from autotune.deploy.persist import wake

        wake(barred, notice)
    _tell_persisted(array)
    if as_json:
        print(json.dumps({name: vars(outcome) for name, outcome in outcomes.items()}, indent=2))
    else:
        for path in torn:
            print(f"Removed {path}, which was cut short before anything was changed.")
        for name, outcome in outcomes.items():
            _print(name, outcome)
        # At boot there is hardly ever anything to do, and then nothing to say.
        if not (outcomes or torn or failed) and sys.stdout.isatty():
            print("Nothing to restore.")
    failed += [text for outcome in outcomes.values() for text in outcome.failed]
    if failed:
        raise RestoreError(
            "Some of what a run left could not be put back: "
            + "; ".join(text.rstrip(".") for text in failed)
            + ". Mend that and run `autotune restore` again."
        )


def _tell_persisted(array: "Array | None") -> None:
    from autotune.deploy.persist import rule_path

    if array is not None and rule_path(array.uuid).exists():
        notice(
            f"A profile is still persisted for {array.device} and comes back at its next start; "
            f"`autotune unpersist {array.device}` ends that."
        )


def _print(name: str, outcome: "Outcome") -> None:
    if outcome.rebooted:
        print(f"{name}: a reboot has reset its settings since.")
        for text in outcome.restored:
            print(f"  removed: {text}")
        return
    print(f"{name}: {len(outcome.restored)} put back.")
    for text in outcome.waiting:
        print(f"  {text}")
    for text in outcome.foreign:
        print(f"  left as somebody else set it: {text}")
    for text in outcome.gone:
        print(f"  gone, so its value is too: {text}")
