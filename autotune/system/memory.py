"""How much memory the machine has to spare, from /proc/meminfo."""

from pathlib import Path

from autotune.errors import UsageError

RESERVE_SHARE = 20
"""What is never spent on a setting: this part of all memory (one twentieth)."""
DEFAULT_RAM_SHARE = 0.05
"""The share of all memory that a setting may take unless another is asked for."""


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


def spare_bytes(root: Path = Path("/")) -> int:
    """What may be taken of what is available, so that the reserve stays; 0 or more."""
    return max(0, available_bytes(root) - reserve_bytes(root))


def budget_bytes(asked: int | float, root: Path = Path("/")) -> int:
    """A RAM budget in bytes from bytes (int) or a share of all memory (float). Raise UsageError
    if it is more than all."""
    memory = total_bytes(root)
    budget = asked if isinstance(asked, int) else int(asked * memory)
    if budget > memory:
        raise UsageError(
            f"A RAM budget of {budget >> 20} MiB is more than this machine's {memory >> 20} MiB."
        )
    return budget
