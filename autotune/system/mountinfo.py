"""What is mounted, as the kernel tells each process (proc_pid_mountinfo(5)).

Light.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from autotune.system import sysfs


@dataclass(frozen=True)
class Mounted:
    """One mount.

    `number` is the mount's own and `device` the filesystem's ("9:0", its st_dev). `root` is the
    folder of the filesystem that is seen at `place`, another than "/" in a bind mount; `source`
    is what was mounted. `options` are those of the mount and of the filesystem.
    """

    number: int
    device: str
    root: str
    place: str
    kind: str
    source: str
    options: frozenset[str]


def mounted(process: Path = Path("/proc/self")) -> list[Mounted]:
    """What a process sees, the latest last; nothing where that cannot be read."""
    # Any other line break may be in the name of a place.
    lines = sysfs.read_or(process / "mountinfo", "").split("\n")
    return [_parsed(line.split(" ")) for line in lines if " - " in line]


def plain(text: str) -> str:
    """Without the octal escapes of /proc files: "\\040" is a space."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def _parsed(fields: list[str]) -> Mounted:
    number, _parent, device, root, place, options, *rest = fields
    # Fields that a kernel may add stand before the dash.
    kind, source, *own = rest[rest.index("-") + 1 :]
    return Mounted(
        number=int(number),
        device=device,
        root=plain(root),
        place=plain(place),
        kind=kind,
        source=plain(source),
        options=frozenset(map(plain, ",".join((options, *own)).split(","))),
    )
