"""Whether an array may be loaded now: the allowed hours, and how busy its disks are."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from autotune.errors import UsageError
from autotune.system.array import Array
from autotune.system.disk_load import BUSY, busy_ms
from autotune.untrusted import plain

SAMPLE_S = 10.0


@dataclass(frozen=True)
class QuietHours:
    """Hours of the day, in minutes since midnight, local time; it may pass midnight."""

    start: int
    end: int

    def holds(self, now: datetime) -> bool:
        minute = now.hour * 60 + now.minute
        if self.start < self.end:
            return self.start <= minute < self.end
        return minute >= self.start or minute < self.end

    def left_s(self, now: datetime) -> float:
        """The time until it closes, 0 if it is closed."""
        if not self.holds(now):
            return 0.0
        minutes = (self.end - now.hour * 60 - now.minute) % (24 * 60)
        return minutes * 60.0 - now.second

    def opens_in_s(self, now: datetime) -> float:
        """The time until it opens, 0 if it is open."""
        if self.holds(now):
            return 0.0
        minutes = (self.start - now.hour * 60 - now.minute) % (24 * 60)
        return minutes * 60.0 - now.second


def parse_window(text: str) -> QuietHours:
    """`01:00-05:00`. Raise UsageError if it is no such thing."""
    found = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)\s*-\s*([01]?\d|2[0-3]):([0-5]\d)", text)
    if found is None:
        raise UsageError(f'"{plain(text)}" is no time of the day; write it like 01:00-05:00.')
    hours = [int(part) for part in found.groups()]
    window = QuietHours(hours[0] * 60 + hours[1], hours[2] * 60 + hours[3])
    if window.start == window.end:
        raise UsageError(f'The window "{plain(text)}" has no length; leave it out for any time.')
    return window


def busy_share(
    array: Array, sample_s: float = SAMPLE_S, sleep: Callable[[float], None] = time.sleep
) -> float:
    """The share of a short time in which the busiest disk of the array had something to do."""
    before, began = {disk: busy_ms(disk, array.root) for disk in array.disks}, time.monotonic()
    sleep(sample_s)
    passed_ms = max((time.monotonic() - began) * 1000, sample_s * 1000)
    after = {disk: busy_ms(disk, array.root) for disk in array.disks}
    return max((after[d] - before[d] for d in before), default=0) / passed_ms


def unsuitable(window: QuietHours | None, now: datetime, needed_s: float, busy: float) -> str:
    """Why an array should be left alone now, as the rest of a sentence; empty if it may be
    loaded for `needed_s`."""
    if window is not None and not window.holds(now):
        return "it is outside its window"
    if window is not None and window.left_s(now) < needed_s:
        return "what is left of its window is too short"
    if busy >= BUSY:
        return f"it is in use (its disks are busy {busy:.0%} of the time)"
    return ""
