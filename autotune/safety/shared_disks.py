"""Profiles that are applied to arrays on the same disks. Whichever is undone first, the disks then
read what the others have set, and after the last one what was there before all of them. Light, as
the journal."""

import contextlib
from collections.abc import Collection, Mapping
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.knobs.scheduler import requests_after_switch
from autotune.knobs.write_order import resets
from autotune.safety.journal import Journal
from autotune.safety.record import Record
from autotune.system import sysfs


def found_first(record: Record, applied: Path, known: Mapping[str, str]) -> dict[str, str]:
    """What files of this record's disks read before the profiles of other arrays, whose values it
    has found there. `applied` is where it lies, or will lie; of some files that is `known`."""
    first = dict(known)
    wanted = [*record.ours, *known]
    for other in _others(record, applied):
        theirs = other.earliest
        # Of a queue under another scheduler than the first one, nothing is known.
        other_queue = [Path(n) for n, text in known.items() if theirs.get(n, text) != text]
        for name in other.changed:
            if name not in theirs or any(resets(path, Path(name)) for path in other_queue):
                continue
            by = other.cause(name)
            # What somebody else has set since is the original.
            found = by is not None and record.originals.get(by) in other.ours[by]
            if found and any(each == name or resets(Path(each), Path(name)) for each in wanted):
                first.setdefault(name, theirs[name])
    return first


def leave_to_others(record: Record, applied: Path, kept: Mapping[str, str]) -> None:
    """Before a record is undone: let what it puts back be what the profiles of other arrays have
    set, and else what was there before all of them. `kept` is what udev sets for other arrays and
    is to stay, by file: where the record has found that, it goes back to it."""
    others, found = _others(record, applied), dict(record.originals)
    stays = [Path(n) for n, text in kept.items() if record.originals.get(n) == text]
    for name in record.changed:
        theirs = [other for other in others if other.cause(name) is not None]
        values = [other.ours[name][-1] for other in theirs if name in other.ours]
        if values and record.originals.get(name) not in values:
            _put_back_instead(record, name, values[-1])
        elif (
            theirs
            and not values
            and (name not in record.ours or sysfs.is_schedulers_own(Path(name)))
        ):
            # It comes back with the scheduler that theirs resets it with.
            record.originals.pop(name, None)
        elif not theirs and name in record.first and not _is_of(stays, Path(name)):
            _put_back_instead(record, name, record.first[name])
    known = {*record.first, *(name for other in others for name in other.ours)}
    _forget_what_another_scheduler_had(record, found, known)


def _forget_what_another_scheduler_had(
    record: Record, found: Mapping[str, str], known: Collection[str]
) -> None:
    """What was `found` of a queue under one scheduler means nothing under another one, which goes
    back instead. What a switch sets is right then, unless something else is `known`."""
    switched = [
        Path(name)
        for name, text in record.originals.items()
        if Path(name).name == "scheduler" and text != found.get(name)
    ]
    for path in switched:
        for name in found:
            if resets(path, Path(name)) and name not in known:
                record.originals.pop(name, None)
        length = str(path.with_name("nr_requests"))
        requests = requests_after_switch(sysfs.device(path), record.originals[str(path)])
        if length in record.ours and length not in known and requests is not None:
            record.originals[length] = str(requests)


def _is_of(paths: Collection[Path], path: Path) -> bool:
    """Whether a file is one of these, or changes with one."""
    return path in paths or any(resets(each, path) for each in paths)


def _put_back_instead(record: Record, name: str, text: str) -> None:
    found = record.originals.get(name)
    if found is not None:
        # Another profile's value is not somebody else's.
        record.ours[name] = [*record.ours.get(name, []), found]
    record.originals[name] = text


def _others(record: Record, applied: Path) -> list[Record]:
    """The records of other arrays with profiles that are in force, on devices that are still the
    same."""
    found = []
    for path in sorted(applied.parent.glob("*.jsonl")):
        # What cannot be read keeps nobody from going back.
        with contextlib.suppress(AutotuneError, OSError):
            other = Journal.load(path).record
            if path.name != applied.name and other.same_boot(record):
                other.ours = {n: t for n, t in other.ours.items() if other.is_same(Path(n))}
                found.append(other)
    return found
