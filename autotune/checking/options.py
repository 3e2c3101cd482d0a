"""What is asked of a check, and why it may not go on."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from autotune.checking.record import CheckRecord
from autotune.guard.goals import Goals
from autotune.guard.window import Window
from autotune.service import quiet_time

WINDOW_SHUT = "it is outside its window"
OVERTAKEN = "another command has checked the array meanwhile"
WINDOW_CLOSED, REPLACED = "its window has closed", "a member was replaced, or the array reshaped"
UNTOLD = "a member may have been replaced, which superblocks of format 0.90 do not tell"
STOPPING = "The check stops within some seconds, at a place up to which all was read."
AT_ONCE = "A second Ctrl-C stops it at once."
ASKED_ANEW = "it was asked to begin anew"


@dataclass(frozen=True)
class CheckOptions:
    """What to keep, where, and whom to call: `on_window` for every window of a part, `waiting` with
    the share that is done while nothing goes on, `notice` with what is worth a sentence, `unheld`
    when the ceiling is out of reach, `mismatched` when sectors differ. None of them may take long.

    `window`: only within this window. `patient`: wait for what goes before the check, instead of
    refusing it. `anew`: begin at the start. `now` is local time.
    """

    goals: Goals
    state_dir: Path
    hottest_c: int
    on_window: Callable[[Window], None]
    waiting: Callable[[str, float], None]
    notice: Callable[[str], None]
    unheld: Callable[[str], None]
    mismatched: Callable[[CheckRecord], None]
    least_kib: float
    window: quiet_time.QuietHours | None = None
    patient: bool = False
    anew: bool = False
    now: Callable[[], datetime] = datetime.now
