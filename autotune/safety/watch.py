"""Watching while a run goes on: what ends it at once, so that the originals can go back."""

import time
from collections.abc import Callable, Sequence

from autotune.errors import InUseError, StoppedError
from autotune.knobs import Knob, read_setting
from autotune.problem.setting import Setting, Value
from autotune.safety.guardian import Guardian
from autotune.safety.set_by import QUEUE_DEPTH
from autotune.safety.signals import Signals
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.blockdev import leads_elsewhere
from autotune.system.memory import available_bytes, reserve_bytes
from autotune.system.neighbours import neighbour_syncing
from autotune.system.replacement import replacement_waits
from autotune.system.sync import NAMES, REBUILDS, ended

PERIOD_S = 0.9
REAL_SYNCS = (*REBUILDS, "reshape", "repair")


class Watch:
    """Call it often: about once a second it looks, and raises StoppedError with the reason.

    Signals only leave a mark for the next call. So nothing is ever cut off in the middle, least
    of all a restore.
    """

    def __init__(self, array: Array, knobs: Sequence[Knob], live: str = "") -> None:
        """`live`: the real sync ("recover", "resync") that is tuned; its end ends the run."""
        self._array = array
        self._live = live
        self._knobs = knobs
        self.signals = Signals()
        self._looked = 0.0
        self._expected: Setting | None = None
        self._guardian: Guardian | None = None
        self._others: list[Callable[[], str | None]] = []

    def also(self, look: Callable[[], str | None]) -> None:
        """From here on `look` is asked too what ends the run."""
        self._others.append(look)

    def rely_on(self, guardian: Guardian) -> None:
        """From here on the guardian has to live, and checks are those that its journal knows."""
        self._guardian = guardian

    def expect(self, setting: Setting | None) -> None:
        """What the knobs must read until the next call; None while they are being changed."""
        self._expected = dict(setting) if setting is not None else None
        self._looked = 0.0

    def __call__(self) -> None:
        if not self.signals.going():
            raise self.signals.ended()
        if time.monotonic() - self._looked >= PERIOD_S:
            self.look()

    def look(self) -> None:
        """Look now. Raise StoppedError with what ends the run, InUseError if it goes first."""
        self._looked = time.monotonic()
        if reason := self._another_array() or self._array_trouble() or self._lost_member():
            raise StoppedError(f"Stopped: {reason}.")
        if first := self._what_goes_first():
            raise InUseError(f"Stopped: {first}, which goes first.")
        reason = (
            self._guardian_trouble()
            or self._memory_trouble()
            or self._foreign_change()
            or next((found for look in self._others if (found := look())), None)
        )
        if reason:
            raise StoppedError(f"Stopped: {reason}.")

    def _another_array(self) -> str | None:
        """Whether the array was stopped, and it or another one started under its name since."""
        device = self._array.device
        if leads_elsewhere(self._array):
            return f"{device} is the name of another device by now"
        if sysfs.identity(self._array.block) in ("", self._array.identity):
            return None
        return f"{device} was stopped, and what has its name now was started since"

    def _array_trouble(self) -> str | None:
        md, device = self._array.md, self._array.device
        if not md.is_dir() or sysfs.read_or(md / "array_state", "clear") in ("clear", "inactive"):
            return f"{device} was stopped"
        # The action first: a recovery that ends makes the array whole before it says so.
        action = sysfs.read_or(md / "sync_action", "idle")
        missing = int(sysfs.read_or(md / "degraded", "0"))
        if missing > self._array.degraded:
            return (
                f"{device} is degraded: a member failed or was removed, or a new level asks for "
                "one more; see /proc/mdstat"
            )
        if self._live and action != self._live:
            if self._live == "recover" and missing == self._array.degraded:
                return f"the {NAMES[self._live]} of {device} was interrupted; see /proc/mdstat"
            raise ended(self._array)
        return None

    def _lost_member(self) -> str | None:
        gone = self._array.lost_member
        return f"/dev/{gone} was taken out of {self._array.device}" if gone else None

    def _what_goes_first(self) -> str | None:
        device, action = self._array.device, sysfs.read_or(self._array.md / "sync_action", "idle")
        if action in REAL_SYNCS and not self._live:
            return f"a {NAMES.get(action, action)} of {device} has started"
        ours = self._guardian is None or self._guardian.journal.record.checking
        if action == "check" and not ours:
            return f"somebody else has started a check of {device}"
        found = neighbour_syncing(self._array)
        if found is None and not self._live:
            found = replacement_waits(self._array)
        return found

    def _guardian_trouble(self) -> str | None:
        if self._guardian is None or not (why := self._guardian.lost):
            return None
        return f"{why}, and without it a kill of autotune would leave settings behind"

    def _memory_trouble(self) -> str | None:
        root = self._array.root
        available, floor = available_bytes(root), reserve_bytes(root)
        if available >= floor:
            return None
        return f"only {available >> 20} MiB of memory are available, below {floor >> 20} MiB"

    def _foreign_change(self) -> str | None:
        if self._expected is None:
            return None
        try:
            current = read_setting(self._array, self._knobs)
        except OSError:
            return f"a setting of {self._array.device} can no longer be read"
        for name, value in current.items():
            expected = self._expected.get(name, value)
            if name == QUEUE_DEPTH and _is_lowered(value, expected):
                continue
            if value != expected:
                return (
                    f"somebody else set {name} to {value} (autotune had set "
                    f"{self._expected[name]}); theirs is left as it is"
                )
        return None


def _is_lowered(depths: Value, expected: Value) -> bool:
    """Whether no disk's depth is above what is expected: the kernel itself lowers it for one whose
    queue is full. It is one number, or, where they differ, one for each disk."""
    each, most = ([int(text) for text in str(value).split(",")] for value in (depths, expected))
    disks = max(len(each), len(most))
    pairs = zip(each * (disks // len(each)), most * (disks // len(most)), strict=True)
    return all(depth <= limit for depth, limit in pairs)
