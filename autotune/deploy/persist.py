"""A profile that stays: one udev rules file for the array, and the profile beside it.

udev's rules are a part of every system with md arrays, know the array by its UUID whatever it is
called, see each assembly and each disk that joins, and reach the queues as well as md's own
files. mdadm.conf's SYSFS reaches no queue and matches no UUID before mdadm 4.6, and a unit would
miss a disk that is replaced. What exactly the rules rest on: `export.udev`.
"""

import contextlib
import os
from collections.abc import Callable, Iterable
from importlib import resources
from pathlib import Path

from autotune.deploy.persisted import (
    FOLDER,
    NOTING,
    RULES,
    half_written,
    own_place,
    persisted_uuids,
    profile_path,
    rule_path,
    rule_text,
)
from autotune.deploy.udevd import tell_udev
from autotune.deploy.whole_files import write_all
from autotune.durable import beside, sync_folder
from autotune.errors import AutotuneError, RefusalError
from autotune.export import udev
from autotune.export.steps import steps
from autotune.knobs import by_name, harmful, read_setting
from autotune.knobs.base import on_every_disk
from autotune.knobs.originals import before_here, replaced, reset_with_schedulers, with_before
from autotune.knobs.profile_file import load_profile, parse_profile
from autotune.knobs.queue import NrRequests
from autotune.knobs.scheduler import requests_after_switch
from autotune.knobs.texts import KERNELS, of_disk
from autotune.preflight import conflicts
from autotune.problem.profile import Profile, as_text
from autotune.problem.setting import Setting
from autotune.safety.applied import (
    applied_profile,
    is_applied,
    known_by_record,
    set_by_profiles,
)
from autotune.safety.locks import lock
from autotune.system import ownership, sysfs
from autotune.system.array import Array
from autotune.system.sysfs import SYSTEM


def check(array: Array, profile: Profile | None = None) -> None:
    """Raise RefusalError if nothing could be persisted for this array, UsageError if the profile
    cannot: better known before a run of half an hour than after."""
    if profile is not None:
        steps(profile)
        budget = harmful.ram_budget_for(profile, array)
        refusals = harmful.judge_on(array, profile.knobs, budget).refusals
        if refusals:
            raise RefusalError(" ".join(refusals) + " So it is not persisted.")
    if not array.uuid or array.metadata == "none":
        # Without a superblock, the kernel makes up another UUID at each start.
        raise RefusalError(
            f"{array.device} has no UUID that lasts, so it cannot be recognised after a restart "
            "and nothing can be persisted for it."
        )
    rules = array.root / RULES
    for path in (rule_path(array.uuid, array.root), array.root / NOTING):
        if os.geteuid() == 0 and (found := ownership.fault(path)):
            raise RefusalError(f"udev would do, as root, what others can change: {found}")
    if not rules.parent.is_dir():
        raise RefusalError(f"There is no {rules.parent}: without udev nothing can be persisted.")
    if not os.access(rules if rules.is_dir() else rules.parent, os.W_OK):
        why = "run autotune as root" if os.geteuid() else "it is on a read-only filesystem"
        raise RefusalError(f"{rules} cannot be written; {why}.")


def persist(
    profile: Profile, array: Array, state_dir: Path, notice: Callable[[str], None]
) -> tuple[Path, ...]:
    """Make a profile that is in effect on an array come back at each assembly; return the files.

    Foreign rules that set the same knobs are told to `notice`, and so are values that do not
    read as the profile says once udev has taken the rules. Raise RefusalError as `check`,
    AutotuneError, leaving what was there, if a file cannot be written.
    """
    check(array, profile)
    root, uuid = array.root, array.uuid
    for text in conflicts.setting(array, profile.knobs):
        notice(text)
    # Of what else profiles in force have set, udev sets nothing any more after the next boot.
    own = {n: value for n, value in before_here(profile, array).items() if n in profile.knobs}
    known = known_by_record(array, state_dir)
    if "scheduler" in own:
        own = {**reset_with_schedulers(array, known), **own}
    before = replaced(own, array, known)
    profile = with_before(profile, array, before, _following(profile, array, before, state_dir))
    rule = udev.persisted(_with_lengths(profile, array, state_dir, notice), uuid)
    text = as_text(profile)
    # What could not be read again would leave no way back.
    parse_profile(text, profile.name)
    place, latest = own_place(uuid, root), profile_path(uuid, root)
    files = {place: text, root / NOTING: _noting_script()}
    files[rule_path(uuid, root)] = rule_text(rule, text)
    if rule_path(uuid, root).exists():
        # The rule decides which of the two profiles counts, if the power fails meanwhile.
        files = dict(reversed(files.items()))
    try:
        if latest != place:
            latest.replace(place)
    except OSError as error:
        raise AutotuneError(f"{place} cannot be replaced ({error.strerror}).") from None
    write_all(files)
    tell_udev(array, notice, root)
    now = read_setting(array.now(), tuple(by_name(name) for name in profile.knobs))
    for name, value in profile.knobs.items():
        if now[name] != value:
            notice(
                f"Once udev had its rules, {name} reads {now[name]} and not {value}: something "
                "else sets it too."
            )
    return place, rule_path(uuid, root), root / NOTING


def _noting_script() -> str:
    return resources.files("autotune.export").joinpath(NOTING.name).read_text()


def persist_applied(
    knobs: Setting, array: Array, state_dir: Path, notice: Callable[[str], None]
) -> tuple[Path, ...] | None:
    """Persist the profile with these values that has just been applied; None if another command
    has put it back since, or applied another one. Raise as `persist`."""
    with lock(array):
        if not is_applied(array, state_dir):
            return None
        profile = load_profile(applied_profile(state_dir, array.uuid))
        if profile.knobs != knobs:
            return None
        return persist(profile, array, state_dir, notice)


def _with_lengths(
    profile: Profile, array: Array, state_dir: Path, notice: Callable[[str], None]
) -> Profile:
    """The profile with the length that the disks' queues have under its scheduler, which resets it
    at each boot. What another profile has set is left out: it ends with the reboot."""
    length = NrRequests()
    if "scheduler" not in profile.knobs or length.name in profile.knobs:
        return profile
    if not on_every_disk(array, length.file):
        return profile
    under, reads, usual = set_by_profiles(array, state_dir), [], []
    for disk in array.disks:
        file, scheduler = (of_disk(array.root, disk, n) for n in (length.name, "scheduler"))
        reads.append(under.get(file) or sysfs.value(file))
        usual.append(str(requests_after_switch(sysfs.device(file), sysfs.value(scheduler))))
    if reads == usual:
        return profile
    if len(set(reads)) > 1:
        notice(
            f"The queues of the disks have different lengths ({', '.join(reads)}), which are not "
            "persisted: at each boot they are what the scheduler makes of them."
        )
        return profile
    lengths: Setting = {length.name: int(reads[0])}
    # A disk that takes one request at a time has a shorter queue than anybody may set.
    if length.impossible(int(reads[0])) or harmful.judge(lengths).refusals:
        return profile
    return profile.model_copy(update={"knobs": {**profile.knobs, **lengths}})


def _following(
    profile: Profile, array: Array, before: Setting, state_dir: Path
) -> list[str] | None:
    """Which of the values before followed the sysctl; None if that is not known of one."""
    record, found = known_by_record(array, state_dir), []
    for name in KERNELS:
        file = array.md / name
        text = record.get(file)
        follows = name in profile.knobs and file.exists() and sysfs.original(file) == SYSTEM
        if text is None and follows:
            # What is applied is what the sysctl says, so nothing was written, but udev will.
            text = SYSTEM
        if text is None and name in before and profile.system is None:
            return None
        if text == SYSTEM or (text is None and name in (profile.system or ())):
            found.append(name)
    return found


def remove_rule(uuid: str, root: Path = Path("/")) -> list[Path]:
    """Remove the rule alone, so that udev, once told, sets nothing any more: what it has set until
    then can be looked at in peace, with the profile, which says what was there before. Return it
    if it was there. Raise AutotuneError if it cannot be removed."""
    latest, place, rule = profile_path(uuid, root), own_place(uuid, root), rule_path(uuid, root)
    try:
        if latest != place:
            # Without its rule, the other one would count.
            latest.replace(place)
    except OSError as error:
        raise AutotuneError(f"{place} cannot be replaced ({error.strerror}).") from None
    return _remove([rule])


def unpersist(uuid: str, root: Path = Path("/")) -> list[Path]:
    """Remove what was persisted for an array, and folders that this leaves empty; return the
    files. The values stay in effect until the array is stopped. Raise AutotuneError if a file
    cannot be removed."""
    rule, own = rule_path(uuid, root), own_place(uuid, root)
    removed = _remove([rule, own, beside(rule), beside(own)])
    return [*removed, *remove_unneeded(root)]


def remove_unneeded(root: Path = Path("/")) -> list[Path]:
    """Remove the script that all rules use if there are none, and folders that are empty then.
    Return it if it was there. Raise AutotuneError if it cannot be removed."""
    needed = persisted_uuids(root) or half_written(root)
    removed = [] if needed else _remove([root / NOTING, beside(root / NOTING)])
    for folder in (root / FOLDER, root / FOLDER.parent):
        # One that is not empty stays, and so does a mount point in the sandbox of the unit.
        with contextlib.suppress(OSError):
            folder.rmdir()
    return removed


def _remove(paths: Iterable[Path]) -> list[Path]:
    """Those that were there."""
    removed = []
    for path in paths:
        if path.exists():
            try:
                path.unlink()
                sync_folder(path.parent)
            except OSError as error:
                raise AutotuneError(
                    f"{path} cannot be removed ({error.strerror}), so what is persisted comes back "
                    "when the array is assembled again; correct that, and run `autotune unpersist`."
                ) from None
            removed.append(path)
    return removed
