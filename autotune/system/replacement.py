"""Members that md is to replace: it copies them to a spare once no sync runs, and so waits for the
end of a check (kernel md_check_recovery)."""

from collections.abc import Mapping

from autotune.system import sysfs
from autotune.system.array import Array


def replacement_waits(array: Array) -> str | None:
    """Which member has come to wait for its replacement since the array was looked at, as the
    rest of a sentence; None if there is none. What was there already md cannot do, or has begun."""
    now = {
        folder.name.removeprefix("dev-"): sysfs.read_or(folder / "state", "")
        for folder in array.md.glob("dev-*")
    }
    to_replace, spares = _waiting(now)
    before = _waiting({member.name: member.state for member in array.members})
    if not to_replace or not spares or (to_replace, spares) == before:
        return None
    return f"the replacement of the member {min(to_replace)} of {array.device} waits"


def _waiting(states: Mapping[str, str]) -> tuple[frozenset[str], frozenset[str]]:
    """The members to replace, and the spares; states are words with commas between them (kernel
    Documentation/admin-guide/md.rst, state)."""
    said = {name: text.split(",") for name, text in states.items()}
    sound = [name for name, words in said.items() if "faulty" not in words]
    return (
        frozenset(name for name in sound if "want_replacement" in said[name]),
        frozenset(name for name in sound if "spare" in said[name]),
    )
