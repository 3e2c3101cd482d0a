"""The syncs that were guarded, a small file each: a guard writes them without a database."""

import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path

from autotune.durable import private_folder, replace
from autotune.errors import AutotuneError
from autotune.guard.guarded_sync import GuardedSync, Recording
from autotune.guard.session import Summary
from autotune.guard.window import Window
from autotune.preflight.environment import place
from autotune.system.array import Array
from autotune.told_once import ToldOnce
from autotune.untrusted import NONSENSE

KEPT = 20
"""Of each array; older ones are forgotten."""
SAVE_S = 300.0
"""Written so often while a sync is under way, for the case that the guard is killed."""


def every(state_dir: Path) -> list[GuardedSync]:
    """All that are kept, the newest first. What is damaged counts as not there."""
    found = [_read(path) for path in (state_dir / "guarded").glob("*.json")]
    return sorted((sync for sync in found if sync is not None), key=lambda sync: -sync.began_s)


def _read(path: Path) -> GuardedSync | None:
    try:
        return GuardedSync.read(json.loads(path.read_text()))
    except (*NONSENSE, OSError):
        return None


def keep(sync: GuardedSync, state_dir: Path) -> None:
    """Write a sync, and forget the oldest of its array. OSError if the disk does not take it."""
    folder = state_dir / "guarded"
    private_folder(folder)
    path = folder / f"{sync.uuid}-{sync.began_s:.0f}.json"
    replace(path, json.dumps(sync.document()), 0o600)
    now_s = path.stat().st_mtime

    def written(other: Path) -> tuple[bool, float, str]:
        # What is of the future was written before the clock was set back, so it is older.
        then_s = other.stat().st_mtime
        return then_s <= now_s, then_s, other.name

    others = [other for other in folder.glob(f"{sync.uuid}-*.json") if other != path]
    for old in sorted(others, key=written, reverse=True)[KEPT - 1 :]:
        old.unlink(missing_ok=True)


class Recorder:
    """Keeps the syncs of one array's guard. A disk that takes nothing is told of once, tried again,
    and keeps no guard from its work."""

    def __init__(
        self,
        state_dir: Path,
        array: Array,
        ceiling_ns: float,
        policy: str | None,
        notice: Callable[[str], None],
    ) -> None:
        self._state_dir, self._once = state_dir, ToldOnce(notice)
        known = ceiling_ns if math.isfinite(ceiling_ns) else None
        self._about = (array.device, array.uuid, known, policy)
        self._recording, self._saved_s = Recording(*self._about), math.inf

    def window(self, window: Window) -> None:
        """A sync is under way."""
        if not self._recording.goes_on(window):
            self.cut()
        self._recording.add(window)
        self._saved_s = min(self._saved_s, window.time_s)
        if window.time_s - self._saved_s >= SAVE_S:
            self._saved_s = window.time_s
            self._save(None)

    def over(self, summary: Summary) -> None:
        """It is over, or not guarded any more."""
        self._save(summary)
        self._begin()

    def cut(self) -> None:
        """The guard ends without a word on how the sync did."""
        self._save(None)
        self._begin()

    def _begin(self) -> None:
        self._recording, self._saved_s = Recording(*self._about), math.inf

    def _save(self, summary: Summary | None) -> None:
        sync = self._recording.so_far(summary)
        if sync is None:
            return
        with self._once.attempt():
            try:
                keep(dataclasses.replace(sync, **place()), self._state_dir)
            except OSError as error:
                raise AutotuneError(
                    f"How the sync went cannot be kept in {self._state_dir / 'guarded'}: "
                    f"{error.strerror}; free some space there to have a report of it."
                ) from error
