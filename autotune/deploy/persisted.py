"""What is persisted on this machine: where it lies, for which arrays, and on which disks."""

import contextlib
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from autotune.durable import beside
from autotune.export import udev
from autotune.system import sysfs

FOLDER = udev.PERSISTED.relative_to("/")
NOTING = udev.NOTING.relative_to("/")
RULES = Path("etc/udev/rules.d")
DIGEST = "# The SHA-256 of its profile: "
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


def changed_by_hand(uuid: str, root: Path = Path("/")) -> str:
    """A sentence if the profile of an array is not the one that its rule was written with; ""
    otherwise."""
    path, rule = profile_path(uuid, root), rule_path(uuid, root)
    with contextlib.suppress(OSError):
        text = rule.read_text(errors="replace")
        # Older versions did not write which it was.
        if DIGEST in text and digest(path.read_bytes()) not in text:
            return (
                f"{path} was changed after {rule} was written, which still sets what the profile "
                "had then; what the profile no longer has is not put back, and stays until the "
                "array is stopped."
            )
    return ""


def rule_path(uuid: str, root: Path = Path("/")) -> Path:
    """Where the udev rules lie that bring its values back."""
    return root / RULES / _rule_name(uuid)


def _rule_name(uuid: str) -> str:
    return f"99-autotune-{uuid}.rules"


def persisted_uuids(root: Path = Path("/")) -> list[str]:
    """The UUIDs of the arrays that a profile is persisted for. A file of another name is not ours,
    be it like one."""
    profiles = (root / FOLDER).glob("*.json")
    rules = (root / RULES).glob(_rule_name("*"))
    names = {*(p.stem for p in profiles), *(p.stem.removeprefix("99-autotune-") for p in rules)}
    return _ours(names)


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


def marked(uuid: str, root: Path = Path("/")) -> list[str]:
    """The disks and partitions of which udev remembers that it has set them for an array, be it
    that they have left it."""
    names = sorted(device.name for device in (root / "sys/class/block").iterdir())
    known = ((name, _known_to_udev(name, root)) for name in names)
    dashed = udev.forms(uuid)[1]
    return [name for name, said in known if _MARK in said and said.get("ID_FS_UUID") == dashed]


def _known_to_udev(name: str, root: Path) -> dict[str, str]:
    """The properties of a block device in udev's database; empty if it knows none."""
    number = sysfs.read_or(root / "sys/class/block" / name / "dev", "")
    known = sysfs.read_or(root / "run/udev/data" / f"b{number}", "")
    return dict(line[2:].partition("=")[::2] for line in known.splitlines() if line[:2] == "E:")
