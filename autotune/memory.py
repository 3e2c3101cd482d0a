"""How much memory the machine has to spare, from /proc/meminfo."""

from pathlib import Path

RESERVE_SHARE = 20
"""What is never spent on a setting: this part of all memory (one twentieth)."""


def _field_bytes(root: Path, name: str) -> int:
    for line in (root / "proc/meminfo").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise OSError(f"/proc/meminfo has no {name}")


def total_bytes(root: Path = Path("/")) -> int:
    """All memory of the machine."""
    return _field_bytes(root, "MemTotal")


def available_bytes(root: Path = Path("/")) -> int:
    """What can be had without swapping (MemAvailable)."""
    return _field_bytes(root, "MemAvailable")


def reserve_bytes(root: Path = Path("/")) -> int:
    """What has to stay available whatever a setting promises."""
    return total_bytes(root) // RESERVE_SHARE
