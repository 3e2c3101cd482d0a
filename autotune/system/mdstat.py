"""/proc/mdstat, as md_seq_show and status_resync write it (drivers/md/md.c). Pure."""

import re


def section(mdstat: str, name: str) -> str:
    """What it says of array `name`; "" if nothing."""
    found = re.search(rf"^{re.escape(name)} : .*?(?=^\S|\Z)", mdstat, re.M | re.S)
    return found[0] if found else ""


def sync_position_kib(mdstat: str, name: str) -> tuple[int, int] | None:
    """How far the sync of array `name` is: (done, all) in KiB of each member, from the text of
    /proc/mdstat; None if none is under way."""
    found = re.search(
        r"(?:check|resync|recovery|repair) *= *[0-9.]+% \(([0-9]{1,18})/([0-9]{1,18})\)",
        section(mdstat, name),
    )
    return (int(found[1]), int(found[2])) if found else None


def getting_on_kib(mdstat: str, name: str) -> tuple[int, int] | None:
    """As `sync_position_kib`, but None once md shows all of it: until the superblocks are written,
    it does so of a sync that was interrupted, too (status_resync)."""
    position = sync_position_kib(mdstat, name)
    return position if position is not None and position[0] < position[1] else None
