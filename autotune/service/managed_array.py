"""A real array with a profile on it, as a pass of re-tuning sees it."""

import dataclasses
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from autotune.deploy.apply import apply_profile
from autotune.deploy.undo import record_persisted
from autotune.errors import AutotuneError, InUseError, RefusalError, RestoreError
from autotune.knobs import ALL, DEFAULT, by_name, for_array, ram_bytes, read_setting
from autotune.knobs.originals import before_here, with_before
from autotune.knobs.profile_file import save_profile
from autotune.measure.workload import load_workload
from autotune.problem.figure import Estimate, Figure
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.safety.deferred_restore import put_back
from autotune.safety.locks import lock
from autotune.safety.outcome import Outcome
from autotune.safety.paths import applied_path, applied_profile_path, journal_path
from autotune.service.config import Care
from autotune.service.policy import ComparedInTurn
from autotune.service.quiet_time import QuietHours, busy_share
from autotune.store import TrialRecord
from autotune.store.database import Store
from autotune.system.array import Array
from autotune.system.disk_load import BUSY
from autotune.system.memory import budget_bytes, total_bytes
from autotune.tuning.preparation import GIVEN, Given, Options
from autotune.tuning.reporter import Reporter
from autotune.tuning.run import Done, run

GLANCE_S, GLANCES = 2.0, 5
"""Between two trials, to see whether somebody else has come to use the array: one quiet glance
of so many says that nobody has."""


class Polite:
    """A reporter that ends the run when somebody else wants the array, or its window closes. Raises
    InUseError from `trial`, after which everything is put back. A later search knows what these
    trials showed."""

    def __init__(
        self,
        reporter: Reporter,
        array: Array,
        window: QuietHours | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        self._reporter, self._array, self._window, self._now = reporter, array, window, now
        self.step, self.notice = reporter.step, reporter.notice
        self.progress, self.ceilings = reporter.progress, reporter.ceilings

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        self._reporter.trial(record, gain)
        self.refuse_outside_window(record.seconds)
        if not record.measured:
            return
        # What our own trial wrote may still be on its way to the disks.
        for _ in range(GLANCES):
            busy = busy_share(self._array, GLANCE_S)
            if busy < BUSY:
                break
        else:
            raise InUseError(
                f"Stopped, since the array is in use (its disks are busy {busy:.0%} of the time "
                "without us); the next pass begins with what the trials until now showed."
            )

    def refuse_outside_window(self, needed_s: float = 0.0) -> None:
        """Raise InUseError if the window of the array does not stay open for so long."""
        if self._window is not None and self._window.left_s(self._now()) <= needed_s:
            raise InUseError(
                "Stopped, since the window of the array closes; the next pass begins with what the "
                "trials until now showed."
            )


class ManagedArray:
    """See `policy.Managed`. `trials`, `seconds`, `bytes_written`: what its measurements took."""

    def __init__(
        self, array: Array, profile: Profile, care: Care, state_dir: Path, reporter: Reporter,
        destructive: str | None = None, now: Callable[[], datetime] = datetime.now,
    ) -> None:  # fmt: skip
        # In the order of its disks as they are now.
        self.profile = with_before(profile, array, before_here(profile, array), profile.system)
        self._array, self._state = array, state_dir
        self._care, self._reporter = care, Polite(reporter, array, care.parsed_window, now)
        self._knobs = tuple(by_name(name) for name in profile.knobs)
        for knob in self._knobs:
            try:
                knob.read(array)
            except (AutotuneError, OSError):
                # As after a change of its level.
                raise RefusalError(
                    f"{array.device} has no {knob.name}, which the profile in force sets; it was "
                    f"made for the array as it was. Take it back (`autotune restore "
                    f"{array.device}`) and tune the array anew."
                ) from None
        self._options = Options(
            device=array.device,
            workload=load_workload(care.workload),
            trials=care.trials,
            time_s=care.time_s,
            ceilings=care.ceilings,
            ram_budget=max(budget_bytes(care.ram, array.root), self._in_use()),
            write_budget=care.write_bytes,
            destructive=destructive,
        )
        self.figures: tuple[Figure, ...] = ()
        self.trials, self.seconds, self.bytes_written = 0, 0.0, 0
        self.adopted: Profile | None = None
        """What was put in force in place of the profile, if anything was."""
        self._proven: Done | None = None

    def _in_use(self) -> int:
        """Bytes that the present settings take: what is in force was allowed more."""
        knobs = for_array(self._array, ALL)
        return ram_bytes(self._array, read_setting(self._array, knobs))

    @property
    def fingerprint(self) -> str:
        return f"{self._array.fingerprint}|{total_bytes(self._array.root) >> 30} GiB"

    @property
    def incumbent(self) -> Setting:
        return read_setting(self._array.now(), self._knobs)

    def against_originals(self) -> ComparedInTurn:
        before = {
            name: value
            for name, value in self.profile.before.items()
            # Queues whose lengths differed ("64,128") are no setting.
            if isinstance(value, int) or not value[0].isdecimal()
        }
        return self._in_turn("the original settings", before)

    def prove(self, setting: Setting) -> ComparedInTurn:
        return self._in_turn("what was found", setting)

    def back_to_originals(self) -> None:
        """What was applied since the boot goes back, and what udev has set of a persisted profile
        before that. Raise RestoreError if it cannot."""
        array = self._array.now()
        path = applied_path(self._state, array.uuid)
        with lock(array, journal_path(self._state, array.uuid), applies=True, undoes=True):
            theirs = record_persisted(array, self._state)
            outcome = put_back(path, array.root)[1] if path.exists() else Outcome()
        if outcome.failed:
            raise RestoreError(f"Not everything could be put back: {'; '.join(outcome.failed)}.")
        if left := "; ".join((*theirs, *outcome.foreign)):
            self._reporter.notice(f"This stays: {left}")
        elif stays := self._still_set(array):
            raise RestoreError(
                f"{stays} could not be put back: what was applied to {array.device} is not "
                f"recorded in {self._state} any more, as if that was removed meanwhile."
            )

    def _still_set(self, array: Array) -> str:
        """What of the profile is still in force, with what it was before, in words."""
        now, before = read_setting(array.now(), self._knobs), self.profile.before
        return ", ".join(
            f"{name} ({value}, before {before[name]})"
            for name, value in self.profile.knobs.items()
            if now[name] == value != before.get(name, value)
        )

    def tune(self) -> Setting | None:
        knobs = tuple(dict.fromkeys((*DEFAULT, *self._knobs)))
        # Not the same proposals each time.
        seed = len(Store(self._state).runs(self._array.uuid))
        options = dataclasses.replace(self._options, knobs=knobs, seed=seed)
        self._array.now()
        self._reporter.refuse_outside_window()
        done = self._counted(run(options, self._state, self._reporter))
        if not done.result.keep:
            return None
        found, before = done.result.winner, done.result.baseline
        changes = {name: value for name, value in found.items() if value != before[name]}
        return {**self.incumbent, **changes}

    def _changes(self, setting: Setting) -> Setting:
        return {k: v for k, v in setting.items() if v != self.profile.before.get(k)}

    def is_original(self, setting: Setting) -> bool:
        return not self._changes(setting)

    def adopt(self, setting: Setting, proof: ComparedInTurn) -> None:
        assert self._proven is not None
        assert self._proven.profile is not None
        assert self._proven.path is not None
        changed = self._changes(setting)
        now = read_setting(self._array.now(), [by_name(name) for name in changed])
        before = {name: self.profile.before.get(name, now[name]) for name in changed}
        profile = self._proven.profile.model_copy(update={"knobs": changed})
        profile = with_before(profile, self._array, before, self.profile.system)
        profile = self._apply(setting, profile)
        save_profile(profile, self._proven.path)
        self.profile = self.adopted = profile

    def _apply(self, setting: Setting, profile: Profile) -> Profile:
        """Put a setting in force; return the profile that it is known by, which is this one without
        what another array's profile has set."""
        whole = profile.model_copy(update={"knobs": dict(setting)})
        self._array.now()
        budget = budget_bytes(self._options.ram_budget, self._array.root)
        notice = self._reporter.notice
        _, now = apply_profile(whole, self._array.device, self._state, notice, budget)
        own = {name: value for name, value in profile.knobs.items() if name in now}
        profile = profile.model_copy(update={"knobs": own})
        save_profile(profile, applied_profile_path(self._state, self._array.uuid))
        return profile

    def _in_turn(self, name: str, setting: Setting) -> ComparedInTurn:
        knobs = tuple(by_name(knob) for knob in setting)
        given = Given(name, dict(setting))
        options = dataclasses.replace(self._options, given=given, knobs=knobs, strategy=GIVEN)
        self._array.now()
        self._reporter.refuse_outside_window()
        done = self._counted(run(options, self._state, self._reporter))
        self.figures, self._proven = tuple(done.result.figures), done
        if done.path is not None:
            # Only what is adopted is a profile.
            done.path.unlink(missing_ok=True)
        if done.result.verdict is None:
            raise RefusalError(f"{self._array.device}: {done.result.reason}.")
        return ComparedInTurn(done.result.verdict, done.result.before, done.result.after)

    def _counted(self, done: Done) -> Done:
        self.trials += done.result.trials
        self.seconds += done.result.seconds
        self.bytes_written += done.result.bytes_written
        return done
