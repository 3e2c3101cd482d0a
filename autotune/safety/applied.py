"""What is applied to an array to stay until the next reboot: recorded, and looked up."""

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from autotune import durable
from autotune.errors import AutotuneError
from autotune.problem.profile import Profile, as_text, digest
from autotune.safety.handed_over import keep
from autotune.safety.journal import Journal
from autotune.safety.locks import Lockable
from autotune.safety.paths import applied_path, applied_profile_path, applied_records
from autotune.safety.record import Record
from autotune.system import disk_originals, sysfs
from autotune.system.array import Array
from autotune.system.noted_records import note


def keep_applied(profile: Profile, array: Array, journal: Journal, state_dir: Path) -> None:
    """Leave the profile's values in force until the next reboot or `autotune restore`. Raise
    AutotuneError, the journal still being open, if that cannot be recorded."""
    _note_on_disks(array, journal.record, state_dir)
    place, text = applied_profile_path(state_dir, array.uuid), as_text(profile)
    try:
        durable.private_folder(place.parent)
        # Killed before the record has both, an earlier profile is still the one in force.
        part = durable.write_beside(place, text)
        try:
            keep(journal, applied_path(state_dir, array.uuid), digest(text.encode()))
        except AutotuneError:
            part.unlink(missing_ok=True)
            raise
        # On a full /run that is left out: it is needed only where the record is out of reach.
        with contextlib.suppress(OSError):
            note(applied_path(state_dir, array.uuid), array.root)
        part.replace(place)
        durable.sync_folder(place.parent)
    except OSError as error:
        raise AutotuneError(f"The profile {place} cannot be written: {error.strerror}.") from None


def applied_profile(state_dir: Path, uuid: str) -> Path:
    """Where the profile lies that is applied: beside its place, if what has applied it was killed
    before it came there."""
    place = applied_profile_path(state_dir, uuid)
    with contextlib.suppress(OSError, AutotuneError):
        known = Journal.load(applied_path(state_dir, uuid)).record.profile
        if digest(durable.beside(place).read_bytes()) == known:
            return durable.beside(place)
    return place


def _note_on_disks(array: Array, record: Record, state_dir: Path) -> None:
    """Note what disks had, which may be another array's next."""
    earlier = known_by_record(array, state_dir)
    for file in (Path(name) for name in record.changed):
        if sysfs.device(file) == array.block:
            continue
        if file not in earlier and _goes_with_a_profile(file, earlier):
            continue
        found, known = record.originals[str(file)], disk_originals.noted(file)
        if file in earlier:
            found = earlier[file]
        elif known is not None and known.set_to in (found, disk_originals.BEING_SET):
            found = known.original
        note = disk_originals.Note(found, sysfs.original(file), array.uuid)
        disk_originals.take_down(file, note)
    for name in record.changed:
        if (file := Path(name)).name == "scheduler":
            _note_what_has_come(sysfs.device(file), array, record)


def _note_what_has_come(disk: Path, array: Array, record: Record) -> None:
    """Note what the settings of a scheduler read that were not there when this began: what the
    switch has made of them, nobody has set."""
    for file, known in disk_originals.noted_of(disk).items():
        if known.set_to == "" and str(file) not in record.originals and file.exists():
            now = replace(known, set_to=sysfs.original(file), uuid=array.uuid)
            disk_originals.take_down(file, now)


def _goes_with_a_profile(file: Path, earlier: Collection[Path]) -> bool:
    """Whether a setting of a scheduler was there with that of an earlier profile alone."""
    return sysfs.is_schedulers_own(file) and sysfs.device(file) / "queue/scheduler" in earlier


def _record(array: Lockable, state_dir: Path) -> Record | None:
    """The record of what is applied; None if there is none of this boot that can be read."""
    with contextlib.suppress(AutotuneError, OSError):
        record = Journal.load(applied_path(state_dir, array.uuid)).record
        return record if record.of_this_boot(array.root) else None
    return None


def recorded(array: Lockable, state_dir: Path) -> set[Path]:
    """The files of which it is recorded what they read before, be it that nothing has changed
    them."""
    record = _record(array, state_dir)
    return {Path(name) for name in record.originals} if record else set()


def known_by_record(array: Lockable, state_dir: Path) -> dict[Path, str]:
    """What the files that a profile of this array has changed read before all profiles."""
    if (record := _record(array, state_dir)) is None:
        return {}
    known = {name: record.originals[name] for name in record.changed}
    return {Path(n): text for n, text in known.items() if record.is_same(Path(n))}


def set_by_profiles(array: Lockable, state_dir: Path) -> dict[Path, str]:
    """The files that have another value by profiles of this array, with what they read before."""
    if (record := _record(array, state_dir)) is None:
        return {}
    with contextlib.suppress(OSError):
        # Of a scheduler's own settings, some were not there before.
        known = {Path(n): text for n, text in record.originals.items() if n in record.ours}
        now = {p: sysfs.original(p) for p in known if p.exists() and record.is_same(p)}
        ours = {p for p, text in now.items() if text in record.ours[str(p)]}
        return {p: known[p] for p in ours if known[p] != now[p]}
    return {}


def set_over(
    array: Lockable, files: Iterable[Path], began: Mapping[str, str], state_dir: Path
) -> list[str]:
    """What is about to replace a value that somebody has set over a profile's, a sentence each:
    what is undone then goes back to before all profiles. `began`: what files read before the
    command changed any of them; else what they read now counts."""
    if (record := _record(array, state_dir)) is None:
        return []
    told = []
    for file in files:
        if str(file) not in record.ours or not file.exists() or not record.is_same(file):
            continue
        before = record.originals.get(str(file), "")
        text = began.get(str(file)) or sysfs.original(file)
        if text not in (*record.ours[str(file)], before):
            told.append(
                f"{file.name} reads {text}, which autotune did not set; it is replaced now, and "
                f"`autotune restore` brings back {before}, as before all profiles."
            )
    # The disks often have the same.
    return list(dict.fromkeys(told))


def ours_by_record(array: Lockable, state_dir: Path) -> dict[Path, list[str]]:
    """What the files may read on account of profiles that were applied."""
    record = _record(array, state_dir)
    return {Path(name): texts for name, texts in record.ours.items()} if record else {}


@dataclass(frozen=True)
class Stopped:
    """An array that does not run, and the disks that it had; see `locks.Lockable`."""

    uuid: str
    name: str
    device: str
    leaves: frozenset[str]
    root: Path = Path("/")


def stopped_array(path: Path) -> Stopped | None:
    """Whose record this is, as an array that does not run; None if it cannot be read."""
    with contextlib.suppress(AutotuneError, OSError):
        record = Journal.load(path).record
        name = Path(record.device).name
        disks = frozenset(Path(folder).name for folder in record.folders) - {name}
        return Stopped(record.uuid, name, record.device, disks)
    return None


def left_on_disks(state_dir: Path, running: Collection[str], root: Path = Path("/")) -> list[str]:
    """What is applied for arrays that do not run, and is still in force on their disks, a sentence
    each. `running` are the UUIDs of those that do."""
    told = []
    for path in applied_records(state_dir):
        with contextlib.suppress(AutotuneError, OSError):
            record = Journal.load(path).record
            files = [(Path(name), texts) for name, texts in record.ours.items()]
            if record.uuid in running or not record.of_this_boot(root):
                continue
            if any(file.exists() and sysfs.original(file) in texts for file, texts in files):
                told.append(
                    f"{record.device} does not run, but its disks still have what was applied for "
                    "it; `autotune restore --all` undoes that."
                )
    return told


def is_applied(array: Lockable, state_dir: Path) -> bool:
    """Whether values are applied to stay that this boot has not forgotten; a record that cannot be
    read may be of these. Raise PermissionError if that cannot be seen: to say that none are would
    be wrong."""
    try:
        record = Journal.load(applied_path(state_dir, array.uuid)).record
    except FileNotFoundError:
        return False
    except AutotuneError:
        return True
    return record.of_this_boot(array.root)
