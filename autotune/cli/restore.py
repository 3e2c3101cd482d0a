"""`autotune restore`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import notice, say

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from autotune.safety.outcome import Outcome
    from autotune.safety.put_back_each import Outcomes
    from autotune.system.array import Array


def restore(
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE",
            autocompletion=complete.devices,
            help="Also undo the profile that is applied to this array. If it is persisted, run "
            "`autotune unpersist` too, or it comes back at the next start.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Undo what was applied or persisted, on every array.")
    ] = False,
    abandoned: Annotated[
        bool,
        typer.Option(
            "--abandoned",
            help="Put back only what killed runs, guards and checks have left, as the timer does.",
        ),
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Undo: put back the original settings, of one array, or of --all.

    Without either, only what a killed run has left is put back.
    """
    import json

    from autotune.errors import RestoreError, UsageError
    from autotune.preflight.checks import require_root
    from autotune.safety import put_back_each as each
    from autotune.safety.other_folders import applied_to, forget_removed, left_elsewhere
    from autotune.safety.paths import open_journals
    from autotune.system.array import find_array

    if all_ and device is not None:
        raise UsageError("Name an array or take --all, not both.")
    if abandoned and (all_ or device is not None):
        raise UsageError("--abandoned goes without an array and without --all.")
    # Others may not even see that there is something.
    require_root()
    paths = each.abandoned(state_dir) if abandoned else open_journals(state_dir)
    array = find_array(device) if device is not None else None
    # What a killed run has tried lies over what was applied, and that over what udev has set.
    came = each.put_back_each(paths, {})
    done, failed, removed = came.done, came.failed, list[Path]()
    if all_ or array is not None:
        more, removed, faults = _undo(array, state_dir, keep=bool(failed))
        done = {**done, **more}
        failed += faults
    # Nobody reads what a timer finds, and a folder whose disk hangs would keep it.
    elsewhere = left_elsewhere(state_dir) if not abandoned else []
    came.barred += forget_removed() if not abandoned else []
    outcomes = _by_name({**each.remove_kept_scratch_of_each(state_dir), **done})
    if came.barred:
        from autotune.deploy.udevd import wake

        wake(came.barred, notice)
    _tell_persisted(array)
    for text in elsewhere:
        notice(text)
    failed += [text for outcome in outcomes.values() for text in outcome.failed]
    document = {name: vars(outcome) for name, outcome in outcomes.items()}
    if as_json and not failed:
        print(json.dumps(document, indent=2))
    elif not as_json:
        _print_all(removed, came.torn, outcomes)
        # The timer hardly ever finds anything, and then it has nothing to say.
        if not (outcomes or came.torn or failed or removed or abandoned):
            print("Nothing to restore.")
            for name in applied_to(state_dir):
                say(f"A profile is applied to {name}; `autotune restore {name}` undoes that.")
    if failed:
        again = " --all" if all_ else f" {device}" if device is not None else ""
        raise RestoreError(
            "Not everything could be put back: "
            + "; ".join(text.rstrip(".") for text in failed)
            + f". Correct that and run `autotune restore{again}` again.",
            document,
        )


def _undo(
    array: "Array | None", state_dir: Path, keep: bool
) -> "tuple[Outcomes, list[Path], list[str]]":
    """Undo the profiles of an array, or of all (None), and remove what is persisted for all; with
    `keep` no profile, which is needed once more. What became of each, the files that were removed,
    and what failed."""
    from autotune.deploy.undo_all import remove_profiles, remove_rules, undo_profiles
    from autotune.system.array import list_arrays

    if array is not None:
        done, failed = undo_profiles([array], False, state_dir)
        return done, [], failed
    removed, failed = remove_rules(notice)
    # An array that came while udev still had its rules is among them.
    arrays = list_arrays()
    done, faults = undo_profiles(arrays, True, state_dir)
    failed += faults
    if not failed and not keep:
        removed += remove_profiles(arrays, notice)
    return done, removed, failed


def _by_name(done: "Outcomes") -> "dict[str, Outcome]":
    """What became of each record, by its array and kind; also by its UUID, where two arrays had the
    same name one after the other."""
    named: dict[str, Outcome] = {}
    for path, (device, outcome) in done.items():
        name = f"{device} ({path.parent.name})"
        named[name if name not in named else f"{device} {path.stem} ({path.parent.name})"] = outcome
    return named


def _tell_persisted(array: "Array | None") -> None:
    if array is None:
        return
    from autotune.deploy.persisted import profile_path, rule_path

    if rule_path(array.uuid).exists() and profile_path(array.uuid).exists():
        notice(
            f"A profile is still persisted for {array.device} and comes back at its next start; "
            f"`autotune unpersist {array.device}` ends that."
        )


def _print_all(
    removed: "Iterable[Path]", torn: "Iterable[Path]", outcomes: "Mapping[str, Outcome]"
) -> None:
    for path in removed:
        print(f"Removed {path}.")
    for path in torn:
        print(f"Removed {path}, which was cut short before anything was changed.")
    for name, outcome in outcomes.items():
        what = name.replace("(applied)", "(profile)").replace("(journal)", "(killed run)")
        _print(what, outcome)


def _print(name: str, outcome: "Outcome") -> None:
    if outcome.rebooted:
        print(f"{name}: what was applied ended with a reboot.")
        for text in outcome.removed:
            print(f"  removed: {text}")
        return
    if outcome.restored or not outcome.removed:
        print(f"{name}: {_put_back(outcome.restored)}.")
    else:
        print(f"{name}:")
    for text in outcome.removed:
        print(f"  removed: {text}")
    for text in outcome.waiting:
        print(f"  {text}")
    for text in outcome.foreign:
        print(f"  stays: {text}")
    if outcome.gone:
        print(f"  no longer there, so there is nothing to put back: {', '.join(outcome.gone)}")


def _put_back(restored: "list[str]") -> str:
    """Each setting once, however many disks have it, and whatever else was done."""
    if not restored:
        return "nothing had to be put back"
    files: dict[str, int] = {}
    for text in restored:
        files[Path(text).name] = files.get(Path(text).name, 0) + 1
    names = (f"{name} ({count} files)" if count > 1 else name for name, count in files.items())
    return f"put back {', '.join(names)}"
