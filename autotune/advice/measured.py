"""How fast each member reads, where a few seconds can tell."""

import os
import shutil
import time

from autotune.advice.members import SLOW
from autotune.measure.member_speed import member_speeds
from autotune.system.array import Array
from autotune.system.disk_load import BUSY, busy_ms

LOOK_S = 0.5


def speeds(array: Array) -> tuple[dict[str, int], str]:
    """KiB/s by member, or nothing and the reason. Nothing is written.

    A member that seems slow is looked at again, and its better figure counts: what disturbed it
    once is no fault of its own.
    """
    if reason := _reason(array):
        return {}, reason
    first = member_speeds(array)
    if not first or min(first.values()) >= SLOW * max(first.values()):
        return first, "" if first else _FAILED
    second = member_speeds(array)
    if not second:
        return {}, _FAILED
    return {name: max(speed, second.get(name, 0)) for name, speed in first.items()}, ""


_FAILED = "the members could not be read, or a sync began"


def _reason(array: Array) -> str:
    if not shutil.which("fio"):
        return "needs fio (`apt install fio`, `dnf install fio`)"
    if os.geteuid():
        return "needs root"
    if array.sync_action != "idle":
        return "a sync is under way"
    busy = _busiest(array)
    return f"{busy} is in use; try at a quiet time" if busy else ""


def _busiest(array: Array) -> str:
    """The member's disk that has been busy for some of the last moment; "" if none has. It has
    users, whose requests would be in the figures; and they would notice."""
    before = {disk: busy_ms(disk, array.root) for disk in array.leaves}
    began_s = time.monotonic()
    time.sleep(LOOK_S)
    passed_ms = (time.monotonic() - began_s) * 1000
    shares = {d: (busy_ms(d, array.root) - was) / passed_ms for d, was in before.items()}
    most = max(shares, key=lambda disk: shares[disk], default="")
    return most if most and shares[most] > BUSY else ""
