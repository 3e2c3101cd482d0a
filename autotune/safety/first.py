"""A record that lies over another one: what was there before both. Light, as the journal.

udev may have set values for a persisted profile before anything was recorded. What files read
before these is `Record.first`, since the record itself has found the values of udev there.
"""

from collections.abc import Mapping
from pathlib import Path

from autotune.knobs.scheduler import requests_after_switch
from autotune.knobs.write_order import resets
from autotune.safety.record import Record
from autotune.system import sysfs


def go_back_to_first(record: Record) -> None:
    """Before a record is undone: let it put back what was there before all profiles."""
    found = dict(record.originals)
    for name in record.changed:
        if name in record.first:
            _put_back_instead(record, name, record.first[name])
    _forget_what_another_scheduler_had(record, found)


def _put_back_instead(record: Record, name: str, text: str) -> None:
    found = record.originals.get(name)
    if found is not None:
        # What udev has set is not somebody else's.
        record.ours[name] = [*record.ours.get(name, []), found]
    record.originals[name] = text


def _forget_what_another_scheduler_had(record: Record, found: Mapping[str, str]) -> None:
    """What was `found` of a queue under one scheduler means nothing under another one, which goes
    back instead. What a switch sets is right then, unless something else is known."""
    switched = [
        Path(name)
        for name, text in record.originals.items()
        if Path(name).name == "scheduler" and text != found.get(name)
    ]
    for path in switched:
        for name in found:
            if resets(path, Path(name)) and name not in record.first:
                record.originals.pop(name, None)
        length = str(path.with_name("nr_requests"))
        requests = requests_after_switch(sysfs.device(path), record.originals[str(path)])
        if length in record.ours and length not in record.first and requests is not None:
            record.originals[length] = str(requests)
