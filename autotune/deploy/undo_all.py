"""Undoing profiles, applied and persisted, on some arrays or on all that are known.

The rules of udev go first, so that nothing is set behind the look at what there is to undo; the
profiles, which say what was there before, go last.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from autotune.deploy.persist import remove_rule, remove_unneeded, unpersist
from autotune.deploy.persisted import changed_by_hand, half_written, persisted_uuids
from autotune.deploy.udevd import settle, tell_exported, tell_udev
from autotune.deploy.undo import record, stopped, unrecorded
from autotune.errors import AutotuneError, UsageError
from autotune.safety.applied import Stopped, stopped_array
from autotune.safety.locks import Lockable
from autotune.safety.outcome import Outcome
from autotune.safety.paths import applied_path, applied_records
from autotune.safety.put_back_each import Outcomes, put_back_each
from autotune.system.array import Array, list_arrays


def remove_rules(notice: Callable[[str], None]) -> tuple[list[Path], list[str]]:
    """Let udev set nothing any more for any array. The rules that were there, and what failed."""
    removed, failed = list[Path](), list[str]()
    here = {array.uuid: array for array in list_arrays()}
    for uuid in persisted_uuids():
        if text := changed_by_hand(uuid):
            notice(text)
        try:
            removed += remove_rule(uuid)
        except AutotuneError as error:
            failed.append(str(error))
        tell_udev(here.get(uuid), notice)
    return removed, failed


def undo_profiles(arrays: list[Array], all_: bool, state_dir: Path) -> tuple[Outcomes, list[str]]:
    """Put back what was applied to these arrays, and what udev has set there; with `all_` also on
    arrays that do not run. What became of each, by its record, with its array, and what failed."""
    # A disk that has joined just now is noted in a moment.
    settle()
    named = [array.uuid for array in arrays]
    known = [*persisted_uuids(), *unrecorded(state_dir)]
    uuids = [uuid for uuid in known if all_ or uuid in named]
    over, unknown = _record_persisted(uuids, arrays, state_dir)
    applied = _applied(state_dir, arrays, all_)
    came = put_back_each(applied, applied)
    for path, (device, foreign) in over.items():
        outcome = came.done.setdefault(path, (device, Outcome()))[1]
        # What is left of the profile applied over it may be the same.
        outcome.foreign = list(dict.fromkeys([*outcome.foreign, *foreign]))
    return came.done, [*unknown, *came.failed]


def remove_profiles(arrays: Iterable[Array], notice: Callable[[str], None]) -> list[Path]:
    """Remove what else --persist has written, for arrays that are here and others. These files."""
    uuids, here = persisted_uuids(), {array.uuid for array in arrays}
    removed = [path for uuid in (*uuids, *half_written()) for path in unpersist(uuid)]
    # Somebody may have removed a profile by hand.
    removed += remove_unneeded()
    for uuid in uuids:
        if uuid in here:
            tell_exported(uuid, notice)
    return removed


def _applied(state_dir: Path, arrays: list[Array], all_: bool) -> dict[Path, Lockable]:
    """The records of what is applied, with what has to be locked; with `all_` those of arrays that
    do not run, too: their disks may still have it."""
    found: dict[Path, Lockable] = {applied_path(state_dir, each.uuid): each for each in arrays}
    found = {path: each for path, each in found.items() if path.exists()}
    if all_:
        for path in applied_records(state_dir):
            if path not in found:
                found[path] = stopped_array(path) or Stopped(path.stem, "", path.stem, frozenset())
    return found


def _record_persisted(
    uuids: list[str], arrays: list[Array], state_dir: Path
) -> tuple[dict[Path, tuple[str, list[str]]], list[str]]:
    """Let what udev has set for these arrays' persisted profiles go back with what was applied.
    What somebody else has set over it, by its record, with its array; and of which arrays what was
    there before is not known, and why."""
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
            failed.append(f"What a profile has set on {array.device} stays for now: {error}")
    return over, failed
