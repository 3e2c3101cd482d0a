"""`autotune restore`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import notice

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from autotune.safety.locks import Lockable
    from autotune.safety.outcome import Outcome
    from autotune.system.array import Array


def restore(
    device: Annotated[
        str | None,
        typer.Argument(
            metavar="DEVICE",
            autocompletion=complete.devices,
            help="Also undo the profile that is applied to this array. One that is persisted comes "
            "back at its next start: `autotune unpersist`.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Undo what was applied or persisted, on every array.")
    ] = False,
    abandoned: Annotated[
        bool,
        typer.Option(
            "--abandoned",
            help="As the timer does: leave alone what is under way or waits for a sync's end.",
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
    from autotune.safety.elsewhere import left_elsewhere
    from autotune.safety.paths import open_journals
    from autotune.system.array import find_array, list_arrays

    if all_ and device is not None:
        raise UsageError("Name an array or take --all, not both.")
    if abandoned and (all_ or device is not None):
        raise UsageError("--abandoned goes without an array and without --all.")
    # Others may not even see that there is something.
    require_root()
    paths = open_journals(state_dir)
    if abandoned:
        paths = [path for path in paths if not _is_held(path)]
    array = find_array(device) if device is not None else None
    # What a killed run has tried lies over what was applied, and that over what udev has set.
    done, torn, barred, failed = _put_back_each(paths, {})
    removed: list[Path] = []
    if all_:
        removed, faults = _remove_rules()
        failed += faults
    # An array or a disk that came while udev still had its rules is looked at, too.
    arrays = list_arrays() if all_ else [array] if array is not None else []
    undone, faults = _undo_profiles(arrays, all_, state_dir)
    failed += faults
    if all_ and not failed:
        removed += _unpersist_all(arrays)
    outcomes = _by_name({**done, **undone})
    if barred:
        from autotune.deploy.udevd import wake

        wake(barred, notice)
    _tell_persisted(array)
    for text in left_elsewhere(state_dir):
        notice(text)
    failed += [text for outcome in outcomes.values() for text in outcome.failed]
    document = {name: vars(outcome) for name, outcome in outcomes.items()}
    if as_json and not failed:
        print(json.dumps(document, indent=2))
    elif not as_json:
        _print_all(removed, torn, outcomes)
        # The timer hardly ever finds anything, and then it has nothing to say.
        if not (outcomes or torn or failed or removed or abandoned):
            print("Nothing to restore.")
    if failed:
        raise RestoreError(
            "Some of what a run left could not be put back: "
            + "; ".join(text.rstrip(".") for text in failed)
            + ". Correct that and run `autotune restore` again.",
            document,
        )


def _is_held(path: Path) -> bool:
    """Whether a process holds a journal, or has just cleared it."""
    from autotune.errors import AutotuneError
    from autotune.safety.paths import is_held

    try:
        return is_held(path)
    except (AutotuneError, OSError):
        # What is wrong with it is told when it is opened.
        return not path.exists()


def _applied(state_dir: Path, arrays: "list[Array]", all_: bool) -> "dict[Path, Lockable]":
    """The records of what is applied, with what has to be locked; with `all_` those of arrays that
    do not run, too: their disks may still have it."""
    from autotune.safety.applied import Stopped, stopped_array
    from autotune.safety.paths import applied_path

    found: dict[Path, Lockable] = {applied_path(state_dir, each.uuid): each for each in arrays}
    found = {path: each for path, each in found.items() if path.exists()}
    if all_:
        records = sorted(applied_path(state_dir, "any").parent.glob("*.jsonl"))
        for path in records:
            if path not in found:
                found[path] = stopped_array(path) or Stopped(path.stem, "", path.stem, frozenset())
    return found


def _by_name(done: "Mapping[Path, tuple[str, Outcome]]") -> "dict[str, Outcome]":
    """What became of each record, by its array and kind; also by its UUID, where two arrays had the
    same name one after the other."""
    named: dict[str, Outcome] = {}
    for path, (device, outcome) in done.items():
        name = f"{device} ({path.parent.name})"
        named[name if name not in named else f"{device} {path.stem} ({path.parent.name})"] = outcome
    return named


def _put_back_each(
    paths: "Iterable[Path]", applied: "Mapping[Path, Lockable]"
) -> "tuple[dict[Path, tuple[str, Outcome]], list[Path], list[str], list[str]]":
    """Put back what these journals hold. What became of each, with its array, those that were cut
    short, the arrays whose persisted values a journal kept udev from, and what failed."""
    import contextlib

    from autotune.errors import AutotuneError
    from autotune.safety.deferred_restore import put_back
    from autotune.safety.locks import lock
    from autotune.safety.paths import clear_if_torn

    done: dict[Path, tuple[str, Outcome]] = {}
    torn: list[Path] = []
    barred: list[str] = []
    failed: list[str] = []
    for path in paths:
        try:
            # What is applied got its name as a whole: damaged, it is told.
            if path not in applied and clear_if_torn(path):
                torn.append(path)
                barred.append(path.stem)
                continue
            below = lock(applied[path], undoes=True) if path in applied else None
            with below or contextlib.nullcontext():
                record, outcome = put_back(path)
            done[path] = record.device, outcome
            if path not in applied and not path.exists():
                barred.append(record.uuid)
        except FileNotFoundError:
            # Whoever held it has put everything back meanwhile.
            if path.is_symlink():
                failed.append(f"{path} is a link that leads nowhere; remove it")
        except (AutotuneError, OSError) as error:
            failed.append(str(error))
    return done, torn, barred, failed


def _undo_profiles(
    arrays: "list[Array]", all_: bool, state_dir: Path
) -> "tuple[dict[Path, tuple[str, Outcome]], list[str]]":
    """Put back what was applied to these arrays, and what udev has set there; with `all_` also on
    arrays that do not run. What became of each, by its record, with its array, and what failed."""
    from autotune.deploy.persisted import persisted_uuids
    from autotune.deploy.udevd import settle
    from autotune.deploy.undo import unrecorded
    from autotune.safety.outcome import Outcome

    if arrays or all_:
        # A disk that has joined just now is noted in a moment.
        settle()
    named = [array.uuid for array in arrays]
    known = [*persisted_uuids(), *unrecorded(state_dir)]
    uuids = [uuid for uuid in known if all_ or uuid in named]
    over, unknown = _record_persisted(uuids, arrays, state_dir)
    applied = _applied(state_dir, arrays, all_)
    done, _, _, failed = _put_back_each(applied, applied)
    for path, (device, foreign) in over.items():
        done.setdefault(path, (device, Outcome()))[1].foreign += foreign
    return done, [*unknown, *failed]


def _record_persisted(
    uuids: list[str], arrays: "list[Array]", state_dir: Path
) -> "tuple[dict[Path, tuple[str, list[str]]], list[str]]":
    """Let what udev has set for these arrays' persisted profiles go back with what was applied.
    What somebody else has set over it, by its record, with its array; and of which arrays what was
    there before is not known, and why."""
    from autotune.deploy.undo import record, stopped
    from autotune.errors import AutotuneError, UsageError
    from autotune.safety.paths import applied_path

    over: dict[Path, tuple[str, list[str]]] = {}
    failed: list[str] = []
    here = {array.uuid: array for array in arrays}
    for uuid in uuids:
        array = here.get(uuid) or stopped(uuid)
        try:
            if theirs := record(array, state_dir):
                over[applied_path(state_dir, uuid)] = array.device, theirs
        except UsageError as error:
            failed.append(
                f"What {array.device} had before its persisted profile is not known: {error}"
            )
        except (AutotuneError, OSError) as error:
            failed.append(f"What udev has set on {array.device} stays for now: {error}")
    return over, failed


def _remove_rules() -> "tuple[list[Path], list[str]]":
    """Let udev set nothing any more for any array. The rules that were there, and what failed."""
    from autotune.deploy.persist import remove_rule
    from autotune.deploy.persisted import changed_by_hand, persisted_uuids
    from autotune.deploy.udevd import tell_udev
    from autotune.errors import AutotuneError
    from autotune.system.array import list_arrays

    removed, failed = list[Path](), list[str]()
    here = {array.uuid: array for array in list_arrays()}
    for uuid in persisted_uuids():
        if text := changed_by_hand(uuid):
            notice(text)
        try:
            removed += remove_rule(uuid)
        except AutotuneError as error:
            failed.append(str(error))
        tell_udev(uuid, here.get(uuid), notice)
    return removed, failed


def _unpersist_all(arrays: "Iterable[Array]") -> "list[Path]":
    """Remove what else --persist has written, for arrays that are here and others. These files."""
    from autotune.deploy.persist import unpersist
    from autotune.deploy.persisted import half_written, persisted_uuids
    from autotune.deploy.udevd import tell_exported

    uuids, here = persisted_uuids(), {array.uuid for array in arrays}
    removed = [path for uuid in (*uuids, *half_written()) for path in unpersist(uuid)]
    for uuid in uuids:
        if uuid in here:
            tell_exported(uuid, notice)
    return removed


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
        for text in (*outcome.removed, *outcome.restored):
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
