"""What becomes of a journal that is not cleared at the end of its run: what it speaks of waits for
the end of a sync, or is wanted, and so recorded as applied. Light.
"""

import contextlib
from pathlib import Path

from autotune.durable import private_folder, sync_folder
from autotune.errors import AutotuneError
from autotune.knobs.reshape import MDADMS_MIN, MIN
from autotune.knobs.write_order import CACHE
from autotune.safety.journal import Journal
from autotune.safety.paths import waiting_path
from autotune.safety.record import Record
from autotune.system import sysfs
from autotune.system.noted_records import forget


def let_wait(journal: Journal, for_a_sync: bool = True) -> None:
    """Everything else is back, so this journal need not bar anybody. What cannot go back while a
    sync runs waits for the sync's end, in a journal of its own. Without `for_a_sync`, a scratch
    folder is all that is left: whoever restores next removes it."""
    path = waiting_path(journal.path)
    if journal.path == path or journal.record.lost:
        return
    folder = journal.path.parent
    earlier = Journal.load(path) if path.exists() else None
    if earlier is not None and not for_a_sync:
        journal.record.originals, journal.record.ours = {}, {}
    if earlier is not None and (not for_a_sync or earlier.record.same_boot(journal.record)):
        journal.record.keep_waiting()
        _join(earlier, journal.record)
        journal.close()
        return
    if earlier is not None:
        _take_scratch(journal, earlier.record)
    forget(journal.path)
    journal.path = journal.path.replace(path)
    sync_folder(folder)
    sync_folder(path.parent)
    journal.record.keep_waiting()
    # What reads otherwise in the end, somebody else has set. Not on a full disk.
    with contextlib.suppress(AutotuneError):
        for name, original in list(journal.record.originals.items()):
            if (path := Path(name)).exists():
                text = sysfs.original(path)
                # The cache waits for a reshape alone, and is back otherwise.
                if not for_a_sync or (path.name == CACHE and text == original):
                    journal.add({"kind": "back", "path": name})
                elif path.name != MIN or text == MDADMS_MIN:
                    journal.add({"kind": "write", "path": name, "text": text})


def _join(journal: Journal, record: Record, newer: bool = False) -> None:
    """Take over the originals of a later record; earlier ones stay, with `newer` only of what
    was changed since."""
    entry = {"originals": record.originals, "folders": record.folders, "newer": newer}
    journal.add({"kind": "originals", **entry})
    for name, texts in record.ours.items():
        journal.add({"kind": "write", "path": name, "text": texts[-1]})
    _take_scratch(journal, record)


def _take_scratch(journal: Journal, record: Record) -> None:
    """Take over what another record has left to remove."""
    for folder in record.scratch:
        mount = record.mounts.get(folder, "")
        # In another boot the filesystem may have another number.
        device = record.devices.get(folder) if record.same_boot(journal.record) else None
        numbers = {"device": device, "parent": record.parents.get(folder)}
        journal.add({"kind": "scratch", "path": folder, "mount": mount, **numbers})


def keep(journal: Journal, applied: Path, profile: str = "") -> None:
    """Clear the journal though nothing went back: the values are wanted. The record moves to
    `applied`, so that they can still be undone; the originals of an earlier record there
    stay the originals. `profile`: the digest of the profile whose values they are, if it is
    one."""
    private_folder(applied.parent)
    earlier = Journal.load(applied) if applied.exists() else None
    # A reboot has undone what was applied before it.
    if earlier is not None and earlier.record.same_boot(journal.record):
        if earlier.record.unsettled:
            # Somebody has begun to undo it, and was stopped.
            earlier.settled()
        _join(earlier, journal.record, newer=True)
        # Settings of a scheduler that was not in force when this began, and is now.
        for name in set(earlier.record.changed) - journal.record.originals.keys():
            path = Path(name)
            ours = sysfs.is_schedulers_own(path) and sysfs.device(path) in journal.switched
            if ours and (text := _text(path)):
                earlier.add({"kind": "write", "path": name, "text": text})
        if profile:
            earlier.add({"kind": "profile", "digest": profile})
        journal.over()
        journal.close()
        # Of the scratch folder, that speaks from here on.
        journal.path, journal.record, journal.held = earlier.path, earlier.record, None
        journal.settle_kept()
        return
    if earlier is not None:
        _take_scratch(journal, earlier.record)
    folder = journal.path.parent
    if profile:
        journal.add({"kind": "profile", "digest": profile})
    forget(journal.path)
    journal.path = journal.path.replace(applied)
    # Killed before this, the guardian puts the originals back.
    journal.over()
    journal.cleared = True
    sync_folder(applied.parent)
    sync_folder(folder)


def _text(path: Path) -> str:
    return sysfs.original(path) if path.exists() else ""
