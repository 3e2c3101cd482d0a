"""Making a profile's values effective on an array, until the next reboot."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from autotune.deploy import exported_script
from autotune.deploy.in_force import Active, active, refuse_damaged
from autotune.deploy.left_alone import without_left_alone
from autotune.deploy.undo import not_noted, record_persisted
from autotune.errors import AutotuneError, RefusalError
from autotune.knobs import (
    ALL,
    Knob,
    by_name,
    for_array,
    harmful,
    is_of_disks,
    missing,
    ram_bytes,
    read_setting,
)
from autotune.knobs.originals import (
    before_here,
    joined,
    replaced,
    tuned_on_disks,
    with_before,
)
from autotune.knobs.scheduler import by_disk, requests_after_switch
from autotune.knobs.texts import texts
from autotune.preflight import checks
from autotune.preflight.state_folder import may_go_first
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting, Value
from autotune.quantities import show_bytes
from autotune.safety import deferred_restore
from autotune.safety.applied import keep_applied, known_by_record, set_over
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.guardian import guarded
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.safety.watch import Watch
from autotune.system import sync, sysfs
from autotune.system.array import Array, find_array
from autotune.system.stack import read_stack


def apply_profile(
    profile: Profile,
    device: str,
    state_dir: Path,
    notice: Callable[[str], None],
    ram_budget_bytes: int | None = None,
    force: bool = False,
) -> tuple[Setting, Setting]:
    """Make a profile's values effective on an array; return them before and after.

    All of them or none: if one does not take, everything is put back, and what somebody else has
    set meanwhile is told to `notice`. Values that do harm, or that take more than the RAM budget
    (by default `harmful.ram_budget_for`), are refused, or with `force` only told. What
    is left alone (`left_alone`) is told. Raise UsageError for a knob that
    does not exist, RefusalError if the array is in no state for it, InfeasibleError if a value does
    not take.
    """
    array = find_array(device)
    path = journal_path(state_dir, array.uuid)
    with lock(array, path, applies=True):
        profile, left_out = without_left_alone(profile, array, state_dir)
        if left_out and not profile.knobs:
            raise RefusalError(f"Nothing is left to apply to {device}. {left_out}")
        if left_out:
            notice(left_out)
        # What was found on a real recovery is wanted while it lasts.
        live = sync.real_sync(array)
        stack = read_stack(array)
        for message in checks.refusals(checks.check(array, stack, live, measures=False)):
            raise RefusalError(message)
        knobs = tuple(by_name(name) for name in profile.knobs)
        for knob in knobs:
            if reason := missing(array, knob):
                raise RefusalError(f'The profile sets "{knob.name}". {reason}')
        for text in _judged(profile, array, ram_budget_bytes, force):
            notice(text)
        exported_script.refuse_over(array)
        refuse_damaged(array, state_dir)
        deferred_restore.settle(path, array.root)
        for text in (*may_go_first(array, stack, state_dir), *not_noted(array, state_dir)):
            notice(text)
        record_persisted(array, state_dir)
        watch = Watch(array, knobs, live)
        paths = journaled_paths(array, for_array(array, ALL), checks=not live)
        with (
            watch.signals.caught(notice),
            guarded(new_journal(path, array.uuid, array.device, paths), notice) as guardian,
        ):
            watch.rely_on(guardian)
            # A script may have begun meanwhile: each says so before it looks for the other.
            exported_script.refuse_over(array)
            watch.look()
            # Not before: what a killed run has left is refused first.
            journal = guardian.journal
            files = (path for knob in knobs for path in knob.paths(array))
            for text in set_over(array, files, journal.record.originals, state_dir):
                notice(text)
            before = read_setting(array, knobs)
            after = apply(array, knobs, profile.knobs, journal, watch)
            keep_applied(known_here(profile, array, before, state_dir), array, journal, state_dir)
    return before, after


def known_here(profile: Profile, array: Array, now: Setting, state_dir: Path) -> Profile:
    """The profile with this array's own values as `before`: those that it read `now`, or that
    the profiles in force found. Those that it came with may be another machine's, and passes of
    re-tuning measure against them and put them back. What only those in force have set, and this
    one replaces, is among them: nothing else would know it."""
    found: Setting = {}
    set_by_them: Setting = {}
    system: tuple[str, ...] | None = ()
    in_force: list[Active] = []
    # One that is damaged is refused before.
    with contextlib.suppress(AutotuneError):
        in_force = active(array, state_dir)
        for each in reversed(in_force):
            found = {**found, **before_here(each.profile, array)}
            known = each.profile.system
            system = None if known is None or system is None else (*system, *known)
            set_by_them = {**set_by_them, **each.profile.knobs}
    others = tuple(by_name(name) for name in found if name not in profile.knobs)
    reads = read_setting(array, tuple(knob for knob in others if knob.applies(array)))
    # What somebody else has set since is theirs.
    kept: Setting = {n: found[n] for n, value in reads.items() if value == set_by_them.get(n)}
    # What its own profiles have found is true already.
    before: Setting = {name: found.get(name, now[name]) for name in profile.knobs}
    if "nr_requests" not in found and "scheduler" in found and "nr_requests" in before:
        lengths = _lengths_before(array, found["scheduler"], state_dir)
        before = replaced(before, array, lengths)
    before = replaced(before, array, _of_disks_that_joined(array, now, in_force))
    return with_before(profile, array, {**kept, **before}, system)


def _lengths_before(array: Array, scheduler: Value, state_dir: Path) -> dict[Path, str]:
    """The length of each disk's queue before a profile in force switched its scheduler: what is
    recorded, else what that scheduler makes of it."""
    known = known_by_record(array, state_dir)
    found = {}
    for disk, name in by_disk(array, scheduler).items():
        path = array.root / "sys/block" / disk / "queue/nr_requests"
        usual = requests_after_switch(sysfs.device(path), name)
        if path in known:
            found[path] = known[path]
        elif usual is not None and sysfs.value(path.with_name("scheduler")) != name:
            found[path] = str(usual)
    return found


def _of_disks_that_joined(
    array: Array, now: Setting, in_force: Sequence[Active]
) -> dict[Path, str]:
    """What disks read that have come since the profiles in force: none of these was there before
    them, and what udev has not set there is their own."""
    if not in_force:
        return {}
    reads = texts(array, {name: value for name, value in now.items() if is_of_disks(name)})
    tuned = [tuned_on_disks(each.profile, array) for each in in_force]
    new = set.intersection(*(joined(each.profile, array) for each in in_force))
    return {
        path: text
        for path, text in reads.items()
        if sysfs.device(path).name in new and all(text != each.get(path) for each in tuned)
    }


def with_those_in_force(
    profile: Profile, array: Array, winner: Setting, baseline: Setting, state_dir: Path
) -> Profile:
    """A run's profile with the knobs of those that were in force while it was proven, since it is
    true only together with them, and with what this array had before all of them."""
    knobs: tuple[Knob, ...] = ()
    # One that cannot be read, or is of another version, is nothing that a finished run fails for.
    with contextlib.suppress(AutotuneError):
        names = dict.fromkeys(n for each in active(array, state_dir) for n in each.profile.knobs)
        knobs = tuple(knob for knob in map(by_name, names) if knob.applies(array))
    now = {**read_setting(array, knobs), **baseline}
    besides = {knob.name: winner.get(knob.name, now[knob.name]) for knob in knobs}
    whole = profile.model_copy(update={"knobs": {**besides, **profile.knobs}})
    return known_here(whole, array, now, state_dir)


def _judged(
    profile: Profile, array: Array, ram_budget_bytes: int | None, force: bool
) -> Iterator[str]:
    """What whoever applies the profile to this array should know first. Raise RefusalError if it
    would do harm, unless forced."""
    if ram_budget_bytes is None:
        ram_budget_bytes = harmful.ram_budget_for(profile, array)
    judged = harmful.judge_on(array, profile.knobs, ram_budget_bytes)
    if judged.refusals and not force:
        raise RefusalError(
            " ".join(judged.refusals) + " So nothing was changed; change the profile, or let "
            f"`autotune run {array.device}` find what is right (`apply --force` sets it until "
            "the next reboot)."
        )
    yield from (*judged.refusals, *judged.warnings)
    proven = profile.proven_on
    there = f"{proven.level} of {proven.members} ({proven.media})"
    here = f"{array.level} of {array.raid_disks} ({array.media.value})"
    if there != here:
        yield f"The profile was proven on another kind of array: {there}; this is {here}."
    cost = ram_bytes(array, profile.knobs)
    if profile.ram_budget_bytes < cost <= ram_budget_bytes:
        yield (
            f"On this array its settings may take {show_bytes(cost)} of RAM, more than the "
            f"{show_bytes(profile.ram_budget_bytes)} that it was made for."
        )
