"""One pass of re-tuning on an array of this machine: when, with what, and who is notified."""

import contextlib
import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from autotune.deploy import persist, udevd
from autotune.deploy.in_force import Active, active
from autotune.deploy.persisted import profile_path
from autotune.errors import AutotuneError, InUseError, NotNowError, RefusalError, SignalledError
from autotune.measure.workload import load_workload
from autotune.preflight.check_schedule import skipped
from autotune.preflight.checks import mismatched
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.service import history
from autotune.service.config import Care, Config, Event
from autotune.service.history import PassRecord
from autotune.service.managed_array import ManagedArray
from autotune.service.notify import log, notify
from autotune.service.policy import Pass, run_pass
from autotune.service.quiet_time import busy_share, unsuitable
from autotune.stats.verdict import Comparison
from autotune.store.database import Store
from autotune.system.array import PARITY, Array
from autotune.system.sync import NAMES
from autotune.tuning.preparation import LEAST_TRIALS
from autotune.tuning.reporter import Reporter
from autotune.untrusted import plain

DRIFTED = 0.9
"""Below this share of the speed at adoption the administrator is told."""
NO_PROFILE = "No profile is in force; `autotune run --apply` finds one."
_KEYS = {
    "--workload": "workload",
    "--p99-ceiling": "p99_ceilings",
    "--ram-budget": "ram_budget",
    "--write-budget": "write_budget",
    "--trials": "trials",
    "--time": "time",
}
_OPTION = re.compile(rf"(?:{'|'.join(_KEYS)})(?![\w-])")


@dataclass(frozen=True)
class Report:
    """What became of one array in a pass: `outcome` is that of the pass, or "no profile",
    "postponed" or "failed", `text` a sentence."""

    device: str
    uuid: str
    outcome: Literal[
        "unchanged", "kept", "reverted", "advised", "adopted", "no profile", "postponed", "failed"
    ]
    text: str
    record: PassRecord | None = None

    @property
    def document(self) -> dict[str, object]:
        """For programs."""
        shown = {"device": self.device, "uuid": self.uuid, "outcome": self.outcome}
        record = self.record.model_dump(mode="json") if self.record else None
        return {**shown, "text": self.text, "pass": record}


def retune(
    array: Array,
    config: Config,
    state_dir: Path,
    reporter: Reporter,
    now: Callable[[], datetime] = datetime.now,
    destructive: str | None = None,
    differs: str | None = None,
) -> Report:
    """Look whether the array's profile is still true, and act on it. `now` is local time; `differs`
    says that a check has found mismatches, if md does not know it any more.

    What goes wrong is in the report, what was in force being back. Raise SignalledError if the
    user wants an end.
    """
    care = config.care(array.uuid)
    told: list[Report] = []
    # By this pass: what somebody else took back stays so.
    taken_back = False

    def tell(report: Report) -> None:
        _tell(report, config, reporter)

    try:
        in_force = active(array := _at_its_turn(array), state_dir)
        if not in_force:
            return Report(array.device, array.uuid, "no profile", NO_PROFILE)
        if why := _not_now(array, care, now(), differs):
            raise InUseError(f"Left alone, since {why}.")
        before = history.load(state_dir, array.uuid)
        managed = ManagedArray(
            array, in_force[0].profile, care, state_dir, reporter, destructive, now
        )
        persisted = _Persisted.of(array, in_force, managed.incumbent)

        def keep(done: Pass, record: PassRecord) -> None:
            ceilings = {f.name: limit for f in managed.figures if (limit := f.limit(done.latest))}
            history.save(before.after(done, record, ceilings), state_dir, array.uuid)

        def reverted(done: Pass) -> None:
            nonlocal taken_back
            record, text = _record(done, managed), persisted.sentence(done)
            told.append(Report(array.device, array.uuid, "reverted", text, record))
            if persisted.is_measured():
                persist.unpersist(array.uuid, array.root)
                taken_back = True
                udevd.tell_udev(array, reporter.notice, array.root)
            tell(told[0])
            keep(done, record)

        done = run_pass(managed, before.known, care.adopt, reverted)
        record = _record(done, managed)
        report = Report(array.device, array.uuid, done.outcome, persisted.sentence(done), record)
        if done.outcome != "reverted":
            # Whatever fails from here on, this is in force.
            told.append(report)
        # Before the hooks, which take their time: a stop of the machine would part the two.
        if taken_back or persisted.is_measured():
            persisted.replace(managed.adopted, state_dir, reporter)
        if done.outcome != "reverted":
            tell(report)
        keep(done, record)
        Store(state_dir).thin(array.uuid)
        return report
    except (InUseError, NotNowError) as error:
        report = Report(array.device, array.uuid, "postponed", in_the_configuration(str(error)))
        if told:
            text = f"{told[0].text} The search for better ones was cut: {report.text}"
            return dataclasses.replace(told[0], text=text)
    except SignalledError:
        raise
    except Exception as error:
        # Whatever befalls one array, the others have their turn.
        text = " ".join([_fault(error), *(each.text for each in told)])
        report = Report(array.device, array.uuid, "failed", text)
        _remember_failure(report, state_dir)
    tell(report)
    return report


def _at_its_turn(array: Array) -> Array:
    """The array as it is by now, which may be long after the pass began. Raise NotNowError if it
    was stopped meanwhile."""
    try:
        return array.now()
    except RefusalError as error:
        raise NotNowError(str(error)) from None


@dataclass(frozen=True)
class _Persisted:
    """What comes back when the array is assembled again, if anything. Over one that is persisted
    somebody may try another until the next reboot: then a pass measures that one alone."""

    array: Array
    profile: Profile | None
    measured: bool
    other: str = ""
    """The profile that should be in force, if something else is set."""

    @classmethod
    def of(cls, array: Array, in_force: Sequence[Active], now: Setting) -> "_Persisted":
        """`now`: what is set on the array. After a pass that put the originals back, that is not
        the profile which comes back at the next assembly."""
        found = next((each.profile for each in in_force if each.how == "persisted"), None)
        wanted = in_force[0].profile
        is_set = all(now.get(name) == value for name, value in wanted.knobs.items())
        same = found is not None and found.knobs == wanted.knobs and is_set
        return cls(array, found, same, "" if is_set else wanted.name)

    def is_measured(self) -> bool:
        """Whether what is measured is persisted; somebody may have taken it back meanwhile."""
        return self.measured and profile_path(self.array.uuid, self.array.root).exists()

    def replace(self, adopted: Profile | None, state_dir: Path, reporter: Reporter) -> None:
        """What comes back at the next start of the array must be what was proven last."""
        if adopted is not None:
            persist.persist_applied(adopted.knobs, self.array, state_dir, reporter.notice)

    def sentence(self, done: Pass) -> str:
        """What became of the pass, and what was not looked at."""
        text = _sentence(done)
        if self.other and done.outcome in ("unchanged", "kept"):
            return (
                f"{text} But what is set is not all of the profile {plain(self.other)}, as "
                "`autotune status` shows, so that was not measured; apply it anew."
            )
        if self.profile is None or self.measured or done.outcome not in ("reverted", "adopted"):
            return text
        return (
            f"{text} The persisted profile {plain(self.profile.name)} was not measured, and comes "
            "back when the array is assembled again."
        )


def _tell(report: Report, config: Config, reporter: Reporter) -> None:
    log(report.outcome, report.device, report.uuid, report.text)
    for event in _events(report):
        if fault := notify(event, report.device, report.uuid, report.text, config.notify):
            reporter.notice(fault)


def _remember_failure(report: Report, state_dir: Path) -> None:
    record = PassRecord(at=datetime.now(UTC), outcome="failed", reasons=(report.text,))
    with contextlib.suppress(AutotuneError):
        before = history.load(state_dir, report.uuid)
        history.save(before.failed(record), state_dir, report.uuid)


def _fault(error: Exception) -> str:
    if isinstance(error, AutotuneError | OSError):
        return in_the_configuration(str(error))
    return f"An error in autotune: {plain(repr(error))}."


def in_the_configuration(text: str) -> str:
    """What is wrong, with the options of `run` as they are called there, if they are there."""
    return _OPTION.sub(lambda option: f"{_KEYS[option[0]]} in the configuration", text)


def _not_now(array: Array, care: Care, now: datetime, differs: str | None) -> str:
    if array.sync_action == "frozen":
        return "its sync is frozen, as while mdadm adds a disk"
    if array.sync_action != "idle":
        return f"a {NAMES.get(array.sync_action, array.sync_action)} is under way"
    if array.level in PARITY and (found := mismatched(array) or differs):
        # On mirrors, swap and writes that were overtaken make some that mean nothing.
        return found[0].lower() + found[1:].rstrip(".")
    if why := skipped(array.root, now.astimezone(), care.time_s):
        return in_the_configuration(why).rstrip(".")
    phases = load_workload(care.workload).phases
    least_s = LEAST_TRIALS * sum(phase.expected_seconds for phase in phases)
    # The window first: looking at the load takes its time.
    return unsuitable(care.parsed_window, now, least_s, 0.0) or unsuitable(
        care.parsed_window, now, least_s, busy_share(array)
    )


def _record(done: Pass, managed: ManagedArray) -> PassRecord:
    def triple(comparison: Comparison | None) -> tuple[float, float, float] | None:
        return (comparison.ratio, comparison.low, comparison.high) if comparison else None

    return PassRecord(
        at=datetime.now(UTC),
        outcome=done.outcome,
        reasons=done.reasons,
        gain=triple(done.gain),
        better=triple(done.better),
        drift=done.drift,
        trials=managed.trials,
        seconds=managed.seconds,
        bytes_written=managed.bytes_written,
    )


def _sentence(done: Pass) -> str:
    why = f" ({'; '.join(done.reasons)})" if done.reasons else ""
    better = (
        f"×{done.better.ratio:.2f} ({done.better.low:.2f} to {done.better.high:.2f})"
        if (done.better)
        else ""
    )
    return {
        "unchanged": f"The profile is as it was{why}.",
        "kept": f"Something moved{why}, and nothing better was proven; the profile stays.",
        "reverted": f"The original settings are back{why}.",
        "advised": f"Something moved{why}; a combination that is {better} was proven, not adopted.",
        "adopted": f"Something moved{why}; a combination that is {better} was proven and adopted.",
    }[done.outcome]


def _events(report: Report) -> list[Event]:
    events: list[Event] = []
    if report.outcome == "failed":
        events.append("failed")
    if report.record is not None and report.record.drift < DRIFTED:
        events.append("drifted")
    if report.outcome in ("reverted", "adopted"):
        events.append("reverted" if report.outcome == "reverted" else "adopted")
    return events
