"""What members of an array are known not to be able to store: md keeps a list of it for each, and
a check leaves it out (drivers/md/badblocks.c, raid1.c: raid1_sync_request; raid5.c:
analyse_stripe)."""

from pathlib import Path

from autotune.system import sysfs
from autotune.system.array import Array


def bad_sectors(array: Array) -> dict[str, int]:
    """How many sectors of each member are listed, of members with any; at least, since the kernel
    tells no more of a list than fits on a page."""
    here = [m.name for m in array.members if "faulty" not in m.state and "spare" not in m.state]
    found = {name: _listed(array.md / f"dev-{name}" / "bad_blocks") for name in here}
    return {name: count for name, count in found.items() if count}


def _listed(file: Path) -> int:
    """The sum of the lengths, from lines of "start length"."""
    lines = [line.split() for line in sysfs.read_or(file, "").splitlines()]
    return sum(int(words[1]) for words in lines if len(words) == 2 and words[1].isdecimal())
