"""What udev remembers of devices, from its database."""

import re
from pathlib import Path

from autotune.system import sysfs

SET_FOR = "AUTOTUNE_OF"
"""Where our rules keep the UUID of the array for which they first set a disk."""
SET_SINCE = "AUTOTUNE_SINCE"
"""Where they keep the number of the event at which they did so."""
_REPLACED = re.compile(r"_([a-z-]+)_")
"""udev writes "_none_ mq-deadline" for "[none] mq-deadline" (man udev, string_escape)."""


def properties(name: str, root: Path) -> dict[str, str]:
    """The properties of a block device, by its kernel name; empty if udev knows none."""
    number = sysfs.read_or(root / "sys/class/block" / name / "dev", "")
    known = sysfs.read_or(root / "run/udev/data" / f"b{number}", "")
    return dict(line[2:].partition("=")[::2] for line in known.splitlines() if line[:2] == "E:")


def had_property(file: str) -> str:
    """Where our rules keep what a file of a disk read before they first set it: for a disk that
    joins an array whose profile is persisted, nobody else has seen that."""
    return f"AUTOTUNE_HAD_{Path(file).name.upper()}"


def set_property(file: str) -> str:
    """Where they keep what they last set in a file of a disk."""
    return f"AUTOTUNE_SET_{Path(file).name.upper()}"


def last_set(name: str, file: str, root: Path) -> str:
    """What is kept there; "" if nothing is."""
    return properties(name, root).get(set_property(file), "")


def had(name: str, file: str, root: Path) -> str:
    """What is kept there of a member's disk; "" if nothing is."""
    text = properties(name, root).get(had_property(file), "")
    chosen = _REPLACED.search(text)
    return chosen[1] if chosen else text if text.isdecimal() else ""


def set_since(name: str, root: Path) -> float:
    """The number of the event at which our rules first set a device: the lower, the earlier;
    infinite if they never did."""
    text = properties(name, root).get(SET_SINCE, "")
    return int(text) if text.isdecimal() else float("inf")
