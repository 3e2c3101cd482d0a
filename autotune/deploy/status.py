"""Whether each array is as its profile says. Changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.deploy import exported_script, rescale
from autotune.deploy.in_force import Active, active, damaged_record
from autotune.deploy.persisted import changed_by_hand, not_whole, profile_path, rule_path
from autotune.errors import AutotuneError
from autotune.knobs import by_name, missing
from autotune.preflight import conflicts, leftovers, syncs
from autotune.problem.profile import Profile
from autotune.problem.setting import Value
from autotune.safety import locks
from autotune.safety.applied import is_applied
from autotune.safety.paths import is_held, journal_path, waiting_path
from autotune.system.array import Array

NOT_PROVEN = (
    "It is not proven: no measurements in turn with the original settings have shown that it is "
    "better."
)


@dataclass(frozen=True)
class KnobStatus:
    """What the profile says of a knob and what it reads; None if it cannot be read. `by` is who
    may have changed it, a sentence each."""

    knob: str
    wanted: Value
    value: Value | None
    by: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        return self.value == self.wanted


@dataclass(frozen=True)
class ArrayStatus:
    """An array beside the profile in force, if there is one. `persisted`: that, or another one, is
    applied again at each start. `misfits` say why it is not of the class any more that the profile
    was proven on, `faults` what else is not as it should be; `notes` are no fault."""

    array: Array
    active: Active | None
    persisted: Profile | None
    knobs: tuple[KnobStatus, ...]
    misfits: tuple[str, ...]
    faults: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def good(self) -> bool:
        """Whether all is as it should be; without a profile there is nothing that should be."""
        return all(knob.same for knob in self.knobs) and not (self.misfits or self.faults)


def status(array: Array, state_dir: Path) -> ArrayStatus:
    """Look at one array."""
    faults: list[str] = []
    notes: list[str] = []
    own = journal_path(state_dir, array.uuid)
    open_journals = list(filter(Path.exists, (own, waiting_path(own))))
    for journal in open_journals:
        (notes if is_held(journal) else faults).append(leftovers.describe(journal, array.root)[0])
    if not open_journals and not locks.is_locked(array.uuid):
        faults += filter(None, [syncs.slowed(array)])
    found = active(array, state_dir, faults)
    faults += filter(None, [damaged_record(array, state_dir)])
    current = found[0] if found else None
    if is_applied(array, state_dir) and (current is None or current.how != "applied"):
        notes.append(
            f"Values are applied that came without a profile; `autotune restore {array.device}` "
            "undoes that."
        )
    # A unit or TuneD that was stopped while a check ran may have left them.
    notes += filter(None, [exported_script.in_force(array)])
    persisted = next((each.profile for each in found if each.how == "persisted"), None)
    faults += filter(None, [changed_by_hand(array.uuid, array.root)])
    again = _persist_anew(array, persisted)
    faults += (f"{text}; {again}." for text in not_whole(array.uuid, array.root))
    rule = rule_path(array.uuid, array.root)
    if persisted is not None and not rule.exists():
        faults.append(
            f'The profile "{persisted.name}" is not set at the next start, since {rule} is gone; '
            f"{again}."
        )
    if rule.exists() and not profile_path(array.uuid, array.root).exists():
        faults.append(
            f"The rule {rule} sets nothing, since the profile that goes with it is gone; "
            f"`autotune restore {array.device}` puts back what is known of before, and `autotune "
            f"unpersist {array.device}` removes the rule."
        )
    if current is None:
        return ArrayStatus(array, None, None, (), (), tuple(faults), tuple(notes))
    profile = current.profile
    if persisted is not None and persisted.knobs != profile.knobs:
        notes.append(f'Another profile, "{persisted.name}", is applied at each start.')
    if not profile.evidence.confirmed:
        notes.append(NOT_PROVEN)
    notes += rescale.differences(profile.proven_on, array)
    return ArrayStatus(
        array,
        current,
        persisted,
        tuple(
            _knob(array, name, value, bool(open_journals)) for name, value in profile.knobs.items()
        ),
        tuple(rescale.misfits(profile.proven_on, profile.knobs, array)),
        tuple(faults),
        tuple(notes),
    )


def _persist_anew(array: Array, persisted: Profile | None) -> str:
    """The commands for what is persisted and not as it should be."""
    removes = f"`autotune unpersist {array.device}` removes it"
    if persisted and any(rescale.misfits(persisted.proven_on, persisted.knobs, array)):
        # `apply` refuses a profile of another class of array.
        return removes
    path = profile_path(array.uuid)
    return f"`autotune apply {path} {array.device} --persist` writes it anew, and {removes}"


def _knob(array: Array, name: str, wanted: Value, uncleaned: bool) -> KnobStatus:
    try:
        knob = by_name(name)
        if reason := missing(array, knob):
            return KnobStatus(name, wanted, None, (reason,))
        value = knob.read(array)
    except (AutotuneError, OSError):
        return KnobStatus(name, wanted, None, (f"{array.device} has no {name}.",))
    if value == wanted:
        return KnobStatus(name, wanted, value)
    return KnobStatus(name, wanted, value, tuple(_who(array, name, value, uncleaned)))


def _who(array: Array, name: str, value: Value, uncleaned: bool) -> Iterator[str]:
    """Who may have changed it, as far as can be known: nothing keeps a record of it. `uncleaned`:
    a run is under way, or was not cleaned up."""
    if uncleaned:
        yield "By the run whose journal is open, or by another program."
        return
    others = conflicts.setting(array, [name])
    yield from others
    if value == by_name(name).default(array):
        yield (
            "It reads as the kernel sets it when an array is assembled or a disk is added, so "
            "that may have happened since, or `autotune restore`."
        )
    elif not others:
        yield "By hand, by another program, or by `autotune restore`."
