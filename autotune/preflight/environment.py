"""What autotune runs on, for a bug report: versions, tools and settings, with nothing in it that
tells whose machine it is (no host name, serial number, UUID or path of a user's). Changes nothing.
"""

import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TypedDict

from autotune.knobs import ALL
from autotune.quantities import show_bytes
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.blockdev import SECTOR, number
from autotune.system.memory import total_bytes
from autotune.system.programs import find
from autotune.untrusted import plain

TOOLS = {
    "mdadm": ("mdadm", "--version"),
    "fio": ("fio", "--version"),
    "dmsetup": ("dmsetup", "--version"),
    "udev": ("udevadm", "--version"),
    "systemd": ("systemctl", "--version"),
}
TOOL_S = 10.0


class Host(TypedDict):
    host: str
    lab: bool


def place() -> Host:
    """The machine: its name, and whether it is the lab."""
    return {"host": platform.node(), "lab": "AUTOTUNE_LAB" in os.environ}


def environment(arrays: Iterable[Array], root: Path = Path("/")) -> dict[str, str]:
    """Each fact in a line, by name, in the order to read them."""
    facts = {
        "autotune": metadata.version("autotune-md"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": _listed(_libraries()),
        "kernel": f"{sysfs.read(root / 'proc/sys/kernel/osrelease')} {platform.machine()}",
        "distribution": _distribution(root),
        "processors": str(os.cpu_count()),
        "memory": show_bytes(total_bytes(root)),
        "process 1": plain(sysfs.read_or(root / "proc/1/comm", "not seen")),
    }
    facts |= {name: _tool(*call) for name, call in TOOLS.items()}
    return facts | {array.device: _array(array) for array in arrays}


def made_of(array: Array, kinds: Iterable[str]) -> dict[str, str]:
    """What the array is made of, for whoever reads its figures elsewhere; `kinds` are those of the
    filesystems on it."""
    disks: dict[str, int] = {}
    for name in array.disks:
        folder = array.root / "sys/block" / name
        model = sysfs.read_or(folder / "device/model", "no model known")
        disk = f"{show_bytes(number(folder / 'size') * SECTOR)} ({plain(model)})"
        disks[disk] = disks.get(disk, 0) + 1
    layout = sysfs.read_or(array.md / "layout", "")
    facts = {
        "array size": show_bytes(array.size_bytes),
        "layout": _layout(array.level, int(layout)) if layout.isdecimal() else "",
        "metadata": array.metadata,
        "bitmap": plain(sysfs.read_or(array.md / "bitmap/location", "")),
        "disks": ", ".join(f"{count} of {disk}" for disk, count in disks.items()),
        "filesystems": ", ".join(dict.fromkeys(kinds)),
    }
    return {name: text for name, text in facts.items() if text}


def _layout(level: str, found: int) -> str:
    """As mdadm calls it (md(4), and mdadm's maps.c)."""
    if level == "raid10":
        near, far = found & 0xFF, found >> 8 & 0xFF
        if far > 1:
            return f"{'offset' if found >> 16 & 1 else 'far'} {far}"
        return f"near {near}"
    names = ("left-asymmetric", "right-asymmetric", "left-symmetric", "right-symmetric")
    known = level in ("raid5", "raid6") and found < len(names)
    return names[found] if known else ""


def _listed(items: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in items.items())


def _libraries() -> dict[str, str]:
    """The versions of what autotune requires, without what only some extra does."""
    required = metadata.requires("autotune-md") or []
    names = (text for text in required if "extra ==" not in text)
    found = {}
    for text in names:
        name = text.split(";")[0].strip().partition(">")[0].partition("=")[0].strip()
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "missing"
    return found


def _distribution(root: Path) -> str:
    try:
        return plain(platform.freedesktop_os_release()["PRETTY_NAME"] if root == Path("/") else "")
    except (OSError, KeyError):
        return "not known"


def _tool(*call: str) -> str:
    program = find(call[0])
    if program is None:
        return "missing"
    try:
        done = subprocess.run(
            (program, *call[1:]),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TOOL_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return "does not answer"
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return plain(" ".join(lines[0].split())) if lines else "says nothing"


def _array(array: Array) -> str:
    """What kind it is, and which settings this kernel has for it."""
    states = {knob.name: str(knob.read(array)) for knob in ALL if knob.applies(array)}
    lacking = [knob.name for knob in ALL if knob.name not in states]
    media = "+".join(sorted({member.media.value for member in array.members}))
    text = f"{array.level}, {len(array.members)} members on {media}, {_listed(states)}"
    return text + (f"; without {', '.join(lacking)}" if lacking else "")
