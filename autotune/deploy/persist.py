"""A profile that stays: one udev rules file for the array, and the profile beside it.

udev's rules are a part of every system with md arrays, know the array by its UUID whatever it is
called, see each assembly and each disk that joins, and reach the queues as well as md's own
files. mdadm.conf's SYSFS reaches no queue and matches no UUID before mdadm 4.6, and a unit would
miss a disk that is replaced. What exactly the rules rest on: `export.udev`.
"""

import contextlib
import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from autotune.deploy.whole_files import write_all
from autotune.durable import beside, sync_folder
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.export import udev
from autotune.export.steps import steps
from autotune.knobs import by_name, harmful, is_of_disks, read_setting
from autotune.knobs.before import (
    before_here,
    disks_here,
    replaced,
    reset_with_schedulers,
    with_before,
)
from autotune.knobs.profile_file import load_profile, parse_profile
from autotune.knobs.texts import KERNELS
from autotune.preflight import conflicts
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.safety.applied import known_by_record
from autotune.safety.paths import journal_path
from autotune.system import udev_data
from autotune.system.array import Array, list_arrays
from autotune.system.blockdev import whole_disk
from autotune.system.programs import find

_FOLDER = udev.PERSISTED.relative_to("/")
_RULES = Path("etc/udev/rules.d")
_UDEV_S = 30
_MARK = "AUTOTUNE_MEMBER"
"""What the rules leave in udev's database of each member (`export.udev`)."""


def profile_path(uuid: str, root: Path = Path("/")) -> Path:
    """Where the profile lies that is persisted for an array: beside its place, if the power failed
    just after the rule of this one had replaced that of another."""
    path, rule = _own_place(uuid, root), rule_path(uuid, root)
    with contextlib.suppress(OSError):
        if _digest(beside(path).read_bytes()) in rule.read_text(errors="replace"):
            return beside(path)
    return path


def _own_place(uuid: str, root: Path) -> Path:
    return root / _FOLDER / f"{uuid}.json"


def _digest(profile: bytes) -> str:
    return hashlib.sha256(profile).hexdigest()


def rule_path(uuid: str, root: Path = Path("/")) -> Path:
    """Where the udev rules lie that bring its values back."""
    return root / _RULES / _rule_name(uuid)


def _rule_name(uuid: str) -> str:
    return f"99-autotune-{uuid}.rules"


def persisted(root: Path = Path("/")) -> list[str]:
    """The UUIDs of the arrays that a profile is persisted for. A file of another name is not ours,
    be it like one."""
    profiles = (root / _FOLDER).glob("*.json")
    rules = (root / _RULES).glob(_rule_name("*"))
    names = {*(p.stem for p in profiles), *(p.stem.removeprefix("99-autotune-") for p in rules)}
    return sorted(name for name in names if re.fullmatch("[0-9a-f]{32}", name))


def check(array: Array, state_dir: Path, profile: Profile | None = None) -> None:
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
    if not re.fullmatch(r"[A-Za-z0-9/._+-]+", str(state_dir.absolute())):
        raise RefusalError(
            f"The name of the state folder {state_dir} cannot stand in a udev rule; use one of "
            "letters, digits, dots and dashes (--state-dir)."
        )
    rules = array.root / _RULES
    if not rules.parent.is_dir():
        raise RefusalError(f"There is no {rules.parent}: without udev nothing can be persisted.")
    if not os.access(rules if rules.is_dir() else rules.parent, os.W_OK):
        raise RefusalError(f"{rules} cannot be written; run autotune as root.")


def persist(
    profile: Profile, array: Array, state_dir: Path, notice: Callable[[str], None]
) -> tuple[Path, Path]:
    """Make a profile that is in effect on an array come back at each assembly; return the files.

    Foreign rules that set the same knobs are told to `notice`, and so are values that do not
    read as the profile says once udev has taken the rules. Raise RefusalError as `check`,
    AutotuneError, leaving what was there, if a file cannot be written.
    """
    check(array, state_dir, profile)
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
    journal = journal_path(state_dir.absolute(), uuid)
    # initramfs-tools copies rules into the initramfs, where they would outlive their removal.
    gate = f'TEST!="{_own_place(uuid, Path("/"))}"'
    rule = udev.rules(_with_lengths(profile, array), *udev.forms(uuid), journal, gate)
    text = profile.model_dump_json(indent=2) + "\n"
    # What could not be read again would leave no way back.
    parse_profile(text, profile.name)
    rule += f"# The SHA-256 of its profile: {_digest(text.encode())}\n"
    place, latest = _own_place(uuid, root), profile_path(uuid, root)
    files = {place: text, rule_path(uuid, root): rule}
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
    return place, rule_path(uuid, root)


def _with_lengths(profile: Profile, array: Array) -> Profile:
    """The profile with the queue length that it was proven with, where that is somebody's own: the
    scheduler resets it at each boot."""
    length = by_name("nr_requests")
    if "scheduler" not in profile.knobs or "nr_requests" in profile.knobs:
        return profile
    if not length.applies(array) or length.read(array) == length.default(array):
        return profile
    knobs = {**profile.knobs, length.name: length.read(array)}
    return profile.model_copy(update={"knobs": knobs})


def _following(
    profile: Profile, array: Array, before: Setting, state_dir: Path
) -> list[str] | None:
    """Which of the values before followed the sysctl; None if that is not known of one."""
    record, found = known_by_record(array, state_dir), []
    for name in KERNELS:
        text = record.get(array.md / name)
        if text is None and name in before and profile.system is None:
            return None
        if text == "system" or (text is None and name in (profile.system or ())):
            found.append(name)
    return found


def unpersist(uuid: str, root: Path = Path("/")) -> list[Path]:
    """Remove what was persisted for an array, and folders that this leaves empty; return the
    files. The values stay in effect until the array is stopped. Raise AutotuneError if a file
    cannot be removed."""
    removed = []
    rule, own = rule_path(uuid, root), _own_place(uuid, root)
    for path in (rule, own, beside(rule), beside(own)):
        if path.exists():
            try:
                path.unlink()
                sync_folder(path.parent)
            except OSError as error:
                raise AutotuneError(
                    f"{path} cannot be removed ({error.strerror}), so what is persisted comes back "
                    "when the array is assembled again; mend that, and run `autotune unpersist`."
                ) from None
            removed.append(path)
    for folder in (root / _FOLDER, root / _FOLDER.parent):
        if folder.is_dir() and not any(folder.iterdir()):
            # In the sandbox of the unit it is a mount point, which stays.
            with contextlib.suppress(OSError):
                folder.rmdir()
    return removed


def left_on_disks(uuid: str, root: Path = Path("/")) -> str:
    """What stays on disks of an array that does not run once its profile is removed, in a sentence:
    on those that do not say what they are; "" if there are none."""
    # One that is damaged is told of by `status`.
    with contextlib.suppress(UsageError):
        profile = load_profile(profile_path(uuid, root))
        had = ", ".join(f"{n} {value}" for n, value in profile.before.items() if is_of_disks(n))
        known = {*disks_here(profile, root).values(), *set_by_udev(uuid, root)}
        if had and len(known) < max(1, len(profile.disks)):
            return (
                f"The array {uuid} does not run, and not all of its disks are known, so what udev "
                f"may have set on these stays until a reboot; before that they had {had}."
            )
    return ""


def set_by_udev(uuid: str, root: Path = Path("/")) -> set[str]:
    """The disks that udev says it has set for the profile that is persisted for an array."""
    found = set()
    for device in (root / "sys/class/block").iterdir():
        said = udev_data.properties(device.name, root)
        if _MARK in said and said.get("ID_FS_UUID", "").replace("-", "").replace(":", "") == uuid:
            found.add(whole_disk(device.name, root))
    return found


def wake(uuids: Iterable[str], notice: Callable[[str], None]) -> None:
    """Let udev set what is persisted for these arrays, where a journal that is now gone has kept
    it from that. What it has set before stays as it reads now."""
    for array in list_arrays():
        if array.uuid in uuids and rule_path(array.uuid).exists():
            tell_udev(array, notice)


def tell_udev(array: Array | None, notice: Callable[[str], None], root: Path = Path("/")) -> None:
    """Let a running udevd have the rules as they are now, and look at the array, if it is there,
    and its members again. By that it remembers that the values are set, or forgets it with the
    rules."""
    if array is not None and not profile_path(array.uuid, root).exists():
        exported = root / _RULES / udev.export_name(array.uuid)
        if exported.exists():
            notice(
                f"The exported rule {exported} is there, too: with no profile persisted it sets "
                "its values from now on; remove it if they are not wanted."
            )
    if not (root / "run/udev/control").exists():
        notice("udevd does not run; this takes effect when it starts next.")
        return
    commands = [["control", "--reload"]]
    if array is not None:
        names = [array.name, *(member.name for member in array.members)]
        devices = [str(root / "sys/class/block" / name) for name in names]
        commands.append(["trigger", "--action=change", *devices])
        # Not `trigger --settle`: a unit without a network hears nothing of udevd's events.
        commands.append(["settle", f"--timeout={_UDEV_S}"])
    for command in commands:
        try:
            subprocess.run(
                [find("udevadm") or "udevadm", *command],
                capture_output=True,
                text=True,
                timeout=2 * _UDEV_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as error:
            said = str(getattr(error, "stderr", None) or error).strip()
            notice(
                f"`udevadm {' '.join(command[:2])}` failed ({said}); the rule takes effect at the "
                "next boot."
            )
            return
