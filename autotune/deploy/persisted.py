"""What is persisted on this machine: where it lies, and for which arrays."""

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path

from autotune.durable import beside
from autotune.export import udev
from autotune.problem.profile import digest

FOLDER = udev.PERSISTED.relative_to("/")
NOTING = udev.NOTING.relative_to("/")
RULES = Path("etc/udev/rules.d")
DIGEST = "# The SHA-256 of its profile: "
_WHOLE = "# The SHA-256 of the lines above: "
_END = 'LABEL="autotune_end"'


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


def rule_text(rules: str, profile: str) -> str:
    """A rules file that says which profile it goes with, and by which it is known whether it is
    whole."""
    text = f"{rules}{DIGEST}{digest(profile.encode())}\n"
    return f"{text}{_WHOLE}{digest(text.encode())}\n"


def not_whole(uuid: str, root: Path = Path("/")) -> list[str]:
    """What was written for an array and is not as it was, so that the profile is not set at the
    next start, or not all of it: a sentence each, without its end."""
    rule, noting = rule_path(uuid, root), root / NOTING
    try:
        text = rule.read_text(errors="surrogateescape")
    except OSError:
        return []
    if not _is_whole(text):
        return [
            f"{rule} is not as autotune wrote it, so nobody knows what it sets at the next start"
        ]
    if str(udev.NOTING) in text and not (noting.is_file() and noting.stat().st_size):
        return [f"{rule} sets nothing on disks, since {noting} is gone"]
    return []


def _is_whole(rule: str) -> bool:
    above, known, last = rule.rpartition(_WHOLE)
    if known:
        return last == f"{digest(above.encode(errors='surrogateescape'))}\n"
    # Older versions wrote no such line.
    lines = [line for line in rule.splitlines() if line and not line.startswith("#")]
    return lines[-1:] == [_END]


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
