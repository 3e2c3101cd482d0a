"""What is persisted on this machine: where it lies, for which arrays, and on which disks."""

import contextlib
import hashlib
import re
from collections.abc import Container, Iterable
from pathlib import Path

from autotune.durable import beside
from autotune.errors import UsageError
from autotune.export import udev
from autotune.knobs import is_of_disks
from autotune.knobs.before import disks_here
from autotune.knobs.profile_file import load_profile
from autotune.system import udev_data
from autotune.system.blockdev import whole_disk

FOLDER = udev.PERSISTED.relative_to("/")
RULES = Path("etc/udev/rules.d")
_MARK = "AUTOTUNE_MEMBER"
"""What the rules leave in udev's database of each member (`export.udev`)."""


def profile_path(uuid: str, root: Path = Path("/")) -> Path:
    """Where the profile lies that is persisted for an array: beside its place, if the power failed
    just after the rule of this one had replaced that of another."""
    path, rule = own_place(uuid, root), rule_path(uuid, root)
    with contextlib.suppress(OSError):
        if digest(beside(path).read_bytes()) in rule.read_text(errors="replace"):
            return beside(path)
    return path


def own_place(uuid: str, root: Path) -> Path:
    return root / FOLDER / f"{uuid}.json"


def digest(profile: bytes) -> str:
    return hashlib.sha256(profile).hexdigest()


def rule_path(uuid: str, root: Path = Path("/")) -> Path:
    """Where the udev rules lie that bring its values back."""
    return root / RULES / _rule_name(uuid)


def length_in_rule(uuid: str, root: Path = Path("/")) -> str:
    """The length of the disks' queues that the rule sets, perhaps beside what its profile does; ""
    if it sets none."""
    with contextlib.suppress(OSError):
        text = rule_path(uuid, root).read_text(errors="replace")
        if found := re.search(r'ATTR\{queue/nr_requests\}="(\d+)"', text):
            return found[1]
    return ""


def _rule_name(uuid: str) -> str:
    return f"99-autotune-{uuid}.rules"


def persisted_uuids(root: Path = Path("/")) -> list[str]:
    """The UUIDs of the arrays that a profile is persisted for. A file of another name is not ours,
    be it like one."""
    profiles = (root / FOLDER).glob("*.json")
    rules = (root / RULES).glob(_rule_name("*"))
    names = {*(p.stem for p in profiles), *(p.stem.removeprefix("99-autotune-") for p in rules)}
    return _ours(names)


def ruled_uuids(root: Path = Path("/")) -> set[str]:
    """The UUIDs of the arrays that udev has rules of ours for: of a profile that is persisted, or
    exported."""
    exported = (root / RULES).glob(udev.export_name("*"))
    return {*persisted_uuids(root), *_ours(path.stem.rpartition("-")[2] for path in exported)}


def half_written(root: Path = Path("/")) -> list[str]:
    """The UUIDs of the arrays that nothing is persisted for, since what was writing that was
    killed: its files never came to their places."""
    profiles = (root / FOLDER).glob(beside(Path("*.json")).name)
    rules = (root / RULES).glob(beside(Path(_rule_name("*"))).name)
    names = {
        path.name[1:].partition(".")[0].removeprefix("99-autotune-") for path in (*profiles, *rules)
    }
    return sorted({*_ours(names)} - {*persisted_uuids(root)})


def _ours(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if re.fullmatch("[0-9a-f]{32}", name))


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
    return {whole_disk(name, root) for name in marked(uuid, root)}


def marked(uuid: str, root: Path = Path("/")) -> list[str]:
    """The disks and partitions of which udev's database says that: members, and what was one."""
    return [name for name, uuids in _remembered(root).items() if uuid in uuids]


def on_these_disks(disks: Container[str], root: Path = Path("/")) -> set[str]:
    """The UUIDs of the arrays with a persisted profile that udev has set one of these disks for."""
    known = _remembered(root).items()
    set_for = {uuid for name, uuids in known if whole_disk(name, root) in disks for uuid in uuids}
    return set_for & {*persisted_uuids(root)}


def stale(root: Path = Path("/")) -> list[str]:
    """The disks and partitions of which udev remembers something, though no rule is there any more
    that has to do with their disk, be it by another partition."""
    ruled, known = ruled_uuids(root), _remembered(root)
    needed = {whole_disk(name, root) for name, uuids in known.items() if uuids & ruled}
    return [name for name in known if whole_disk(name, root) not in needed]


def _remembered(root: Path) -> dict[str, set[str]]:
    """The disks and partitions that udev has set, with the UUIDs of the arrays that they have to do
    with: that for which it first set them, and that of which they are members."""
    found = {}
    for name in sorted(device.name for device in (root / "sys/class/block").iterdir()):
        first = _bare(udev_data.properties(name, root).get(udev_data.SET_FOR, ""))
        if uuids := {first, member_of(name, root)} - {""}:
            found[name] = uuids
    return found


def member_of(name: str, root: Path = Path("/")) -> str:
    """The UUID of the array of which a disk or partition is a member that udev has set; or ""."""
    said = udev_data.properties(name, root)
    return _bare(said.get("ID_FS_UUID", "")) if _MARK in said else ""


def _bare(uuid: str) -> str:
    return uuid.replace("-", "").replace(":", "")
