"""Putting back what a journal says. Light: the guardian runs it when the tuner is dead."""

import contextlib
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from autotune.durable import beside
from autotune.errors import AutotuneError
from autotune.knobs.resets import resets
from autotune.knobs.reshape import MIN, may_come_back
from autotune.knobs.write_order import BOUNDS, OF_REDUNDANCY, WAITING, restoring
from autotune.safety import own_array
from autotune.safety.handed_over import let_wait
from autotune.safety.journal import Journal
from autotune.safety.outcome import Outcome, because, reason
from autotune.safety.own_check import stop_check
from autotune.safety.own_scratch import remove_scratch
from autotune.safety.paths import is_of_applied
from autotune.safety.record import BOOT_ID, Record
from autotune.safety.restore_file import put_back_file, tell
from autotune.safety.set_by import lowers_itself, theirs
from autotune.system import disk_originals, sysfs
from autotune.system.blockdev import md_uuid
from autotune.system.sync import REBUILDS

PATIENCE_S = 10.0
"""What is noted meanwhile counts only if this is killed, too: a disk that hangs, or is frozen for a
backup, keeps nothing from going back."""


def restore(journal: Journal, root: Path = Path("/"), at_once: bool = False) -> Outcome:
    """Put everything back that the journal's run changed, then clear the journal. `at_once`: right
    after the run's end, when nobody can have come between.

    Never raises for one file: it goes on with the rest, and keeps the journal if any failed. What
    the kernel does not take while a sync runs waits in a journal of its own, and so does a scratch
    folder that cannot be removed. It waits for the journal's disk only when all is back.
    """
    record, outcome = journal.record, Outcome()
    journal.patience_s = PATIENCE_S
    needed = (root / "sys/block", root / BOOT_ID.relative_to("/"))
    if hidden := [str(path) for path in needed if not path.exists()]:
        # What cannot be seen is not gone.
        outcome.failed.append(
            f"{hidden[0]} is not there; mount /sys and /proc, or leave the chroot"
        )
        return outcome
    if record.of_this_boot(root):
        _restore_settings(journal, root, outcome)
    else:
        # The kernel has forgotten every value since; only what is on disk is left to remove.
        outcome.gone, outcome.rebooted = list(record.originals), True
    _remove_arrays(record, outcome, at_once)
    settled = outcome.complete
    _remove_scratch(journal, outcome)
    if settled and not outcome.rebooted:
        _forget_notes(journal, root)
    if settled:
        try:
            _end(journal, outcome)
        except (AutotuneError, OSError) as error:
            outcome.failed.append(
                f"all settings are, but {journal.path} cannot be cleared ({reason(error)})"
            )
    return outcome


def _end(journal: Journal, outcome: Outcome) -> None:
    """Clear a journal of which all is back, but for a scratch folder perhaps: a filesystem that
    does not let go of a file must not keep a guard from a rebuild."""
    place = journal.path
    if outcome.failed or outcome.waiting:
        let_wait(journal, for_a_sync=bool(outcome.waiting))
    else:
        journal.close()
    if not place.exists():
        # Beside the record of what was applied to stay lies the profile, or half of the next.
        profile = place.with_suffix(".json")
        for path in (profile, beside(profile)):
            path.unlink(missing_ok=True)


def remove_kept_scratch(journal: Journal) -> Outcome:
    """Remove the scratch folders that a record of what is applied still names: a tuner that is
    killed once its settings are kept has not done so. Never raises for one of them."""
    outcome = Outcome()
    _remove_scratch(journal, outcome)
    return outcome


def _remove_scratch(journal: Journal, outcome: Outcome) -> None:
    for name in list(journal.record.scratch):
        failed = len(outcome.failed)
        remove_scratch(Path(name), journal.record, outcome)
        if len(outcome.failed) == failed:
            # The disk may be full; it is looked for once more then.
            with contextlib.suppress(AutotuneError):
                journal.removed(Path(name))


def _forget_notes(journal: Journal, root: Path) -> None:
    """What is noted of disks for values that are undone."""
    record = journal.record
    if is_of_applied(journal.path):
        disk_originals.forget(record.uuid, root, {Path(name) for name in record.originals})
    else:
        # An `apply` may have ended between its notes and its record.
        back = {Path(name): record.originals[name] for name in record.changed}
        disk_originals.forget_undone(record.uuid, root, back)


def _restore_settings(journal: Journal, root: Path, outcome: Outcome) -> None:
    record = journal.record
    paths = {Path(name): text for name, text in record.originals.items()}
    block = root / "sys/block" / Path(record.device).name
    # What is a scheduler's own comes back with it.
    there = {path for path in paths if path.exists() or sysfs.is_schedulers_own(path)}
    gone = {path for path in paths if not (path in there and record.is_same(path))}
    if _another_array(record, block, root):
        gone |= {path for path in paths if path.is_relative_to(block)}
    elif record.checking and not record.making and record.is_same(block / "md/sync_action"):
        stop_check(block, outcome, record)
        if outcome.checking:
            # It is ours still if md begins it only when a disk answers again.
            with contextlib.suppress(AutotuneError):
                journal.checking(True, start=record.check_start)
    unseen = {path for path in gone if _is_unseen(path, record)}
    if hidden := {path for path in unseen if _is_in_force(path, record)}:
        names = " and ".join(sorted(path.name for path in hidden))
        outcome.failed.append(
            f"{names} of {record.device} cannot be seen while the array has no redundancy, but "
            "will be in force with its next level: restore again then, or stop the array"
        )
    outcome.gone = [str(path) for path in paths if path in gone - unseen]
    lifted = {path for path in there - gone if _holds_a_rebuild(path, record)}
    paths |= dict.fromkeys(lifted, "max")
    # Before the first look at them: what mdadm puts back is there before it ends.
    coming = {path for path in paths if str(path) in record.ours and may_come_back(path)}
    # The array's own first: a disk that hangs may keep us from all that follows.
    here = [path for path in paths if path not in gone]
    own = {path: paths[path] for path in here if path.is_relative_to(block)}
    rest = {path: paths[path] for path in here if path not in own}
    kept: dict[Path, str | None] = {}
    all_back = True
    for part in (own, rest):
        back, stays = _restore_part(journal, part, coming, outcome)
        all_back, kept = all_back and back, kept | stays
    if coming or not all_back:
        for path, keep in kept.items():
            # Of what waits, and is back or somebody else's, nothing is to be done any more.
            over = keep or path.name == MIN or path in lifted
            if path.name in WAITING and path not in coming and over:
                journal.leave(path)
        outcome.waiting = record.waits(root)


def _restore_part(
    journal: Journal,
    paths: Mapping[Path, str],
    coming: Set[Path],
    outcome: Outcome,
) -> tuple[bool, dict[Path, str | None]]:
    """Put these files back, none of which resets one of another part. Whether all are, and which
    of them have a value of somebody else's that stays."""
    record = journal.record
    all_back = True
    # Who set a value is judged before the first write: a switch of the scheduler back resets
    # others, and what it leaves there is nobody's.
    found = _found(paths, outcome)
    writes = restoring({path: paths[path] for path in found})
    kept: dict[Path, str | None] = {write.path: None for write in writes}
    for write in writes:
        # A device that goes just now is told below.
        with contextlib.suppress(AutotuneError, OSError):
            kept[write.path] = theirs(journal, write, found[write.path], coming)
    for write in writes:
        path = write.path
        reset = any(resets(Path(other), path) for other in paths) or lowers_itself(record, path)
        # Somebody may have set it since; or the kernel has, with a write of ours.
        with contextlib.suppress(AutotuneError, OSError):
            later = theirs(journal, write, sysfs.original(path), coming)
            kept[path] = kept[path] if reset and later is None else later
        keep = kept[path]
        if keep is not None:
            tell(record, write, keep, outcome)
        if keep is None or reset:
            all_back &= put_back_file(journal, write, keep, coming, outcome)
    return all_back, kept


def _is_unseen(path: Path, record: Record) -> bool:
    """Whether a file is gone with the redundancy of its array alone, as on the way of a RAID 10
    over 0 to 5: with another level it is there again, and so is its value (md.c, level_store; seen
    on 6.1.176). Of an array that was stopped just now, it is gone for good."""
    if path.name not in OF_REDUNDANCY or not record.is_same(path):
        return False
    return sysfs.read_or(path.parent / "array_state", "clear") != "clear"


def _is_in_force(path: Path, record: Record) -> bool:
    """Whether we have changed a file that cannot be seen."""
    of_a_check = path.name in BOUNDS and (record.checking or record.moved)
    return of_a_check or record.cause(str(path)) is not None


def _holds_a_rebuild(path: Path, record: Record) -> bool:
    """Whether a bound of ours is in the way of a recovery or resync. The one before it cannot go
    back then: md takes none that is lower while a sync runs (max_sync_store). Nor need it: one
    that completes forgets them all (md_do_sync)."""
    is_bound = path.name == "sync_max" and _is_in_force(path, record)
    return is_bound and sysfs.read_or(path.parent / "sync_action", "idle") in REBUILDS


def _found(paths: Iterable[Path], outcome: Outcome) -> dict[Path, str]:
    """What the files read now; those that cannot be read have failed."""
    found = {}
    for path in paths:
        try:
            found[path] = sysfs.original(path)
        except (AutotuneError, OSError) as error:
            outcome.failed.append(because(path, error))
    return found


def _another_array(record: Record, block: Path, root: Path) -> bool:
    """Whether the name has gone to another array since. Stopping the one that had it has undone
    every setting of it."""
    metadata = sysfs.read_or(block / "md/metadata_version", "")
    return bool(metadata) and md_uuid(block.name, metadata, root) not in ("", record.uuid)


def _remove_arrays(record: Record, outcome: Outcome, at_once: bool) -> None:
    if record.making:
        # Somebody may have used a whole one even now, where the guardian was kept from its turn.
        begun = at_once and not record.made
        removing = not record.made
        how = (outcome.rebooted, begun, removing)
        removal = own_array.remove_left(record.uuid, record.making, *how)
        outcome.removed += removal.removed
        outcome.failed += removal.failed
