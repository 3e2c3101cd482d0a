"""Profiles that are applied to arrays on the same disks. Whichever is undone first, the disks then
read what the others have set, and after the last one what was there before all of them. Light, as
the journal."""

import contextlib
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.journal import Journal
from autotune.safety.record import Record


def found_first(record: Record, applied: Path) -> dict[str, str]:
    """What files of this record's disks read before the profiles of other arrays, whose values it
    has found there. `applied` is where it lies, or will lie."""
    first: dict[str, str] = {}
    for other in _others(record, applied):
        known = {**other.originals, **other.first}
        for name in other.changed:
            by = other.cause(name)
            # What somebody else has set since is the original.
            found = by is not None and record.originals.get(by) in other.ours[by]
            if found and record.cause(name) is not None:
                first.setdefault(name, known[name])
    return first


def leave_to_others(record: Record, applied: Path) -> None:
    """Before a record is undone: let what it puts back be what the profiles of other arrays have
    set, and else what was there before all of them."""
    others = _others(record, applied)
    for name in record.changed:
        theirs = [other for other in others if other.cause(name) is not None]
        values = [other.ours[name][-1] for other in theirs if name in other.ours]
        if values and record.originals.get(name) not in values:
            _put_back_instead(record, name, values[-1])
        elif theirs and not values:
            # It comes back with the scheduler that theirs resets it with.
            record.originals.pop(name, None)
        elif not theirs and name in record.first:
            _put_back_instead(record, name, record.first[name])


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
