"""What udev remembers of devices, from its database."""

from pathlib import Path

from autotune.system import sysfs


def properties(name: str, root: Path) -> dict[str, str]:
    """The properties of a block device, by its kernel name; empty if udev knows none."""
    number = sysfs.read_or(root / "sys/class/block" / name / "dev", "")
    known = sysfs.read_or(root / "run/udev/data" / f"b{number}", "")
    return dict(line[2:].partition("=")[::2] for line in known.splitlines() if line[:2] == "E:")
