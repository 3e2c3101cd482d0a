"""What a journal's lines say. Light."""

import json
from pathlib import Path

from autotune.errors import AutotuneError
from autotune.safety.paths import is_of_applied, is_waiting
from autotune.safety.record import Record
from autotune.untrusted import NONSENSE

OVER = b'{"kind": "over"}\n'
"""The last line of a journal whose run has nothing more to put back; see `is_over`."""
_REMOVED = b'"kind": "removed"'


def read_record(path: Path, text: bytes) -> Record:
    """What the text of a journal says, or of the record of what is applied, which one is by the
    `path`. A last line that was cut short is ignored: what it would have announced did not happen.

    Raise AutotuneError if there is no whole first line that says what to restore.
    """
    lines = text.decode("utf-8", "replace").splitlines()
    record = _first(path, text, lines)
    for number, line in enumerate(lines[1:], 2):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            # The last one may be cut short: what it announces was not done then.
            record.lost = record.lost or number < len(lines)
            continue
        if isinstance(entry, dict):
            record.learn(entry)
    if is_waiting(path):
        record.keep_waiting()
    if is_over(text) and not is_of_applied(path):
        # Killed before the file was gone: all is back, or kept.
        record = record.nothing_left()
    return record


def _first(path: Path, text: bytes, lines: list[str]) -> Record:
    try:
        head = json.loads(lines[0])
        return Record(
            str(head["uuid"]),
            str(head["device"]),
            str(head["boot"]),
            int(head["pid"]),
            {str(p): str(t) for p, t in head["originals"].items()},
            None if (start := head.get("started_s")) is None else float(start),
            folders={str(f): str(i) for f, i in dict(head.get("folders", {})).items()},
            kernel=str(head.get("kernel", "")),
        )
    except NONSENSE:
        if is_of_applied(path):
            raise AutotuneError(
                f"The record {path} is damaged, so what was there before the profile is not "
                "known; reboot, remove the file, and apply the profile anew."
            ) from None
        if b"\n" in text:
            raise AutotuneError(
                f"The journal {path} is damaged, so what was there before is not known; "
                "reboot, and remove the file."
            ) from None
        raise AutotuneError(
            f"The journal {path} has no whole first line; since that is written before "
            "anything is changed, nothing was: remove the file."
        ) from None


def is_over(text: bytes) -> bool:
    """Whether a journal says that nothing is left to put back. What is kept is said to be so
    before the run's scratch folder is gone, which is noted after that, if it is noted whole."""
    _, over, after = text.rpartition(OVER)
    return bool(over) and all(_REMOVED in line for line in after.split(b"\n")[:-1])
