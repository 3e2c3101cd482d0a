"""The udevd of this machine, which sets what is persisted."""

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from autotune.deploy.persisted import RULES, rule_path
from autotune.export import udev
from autotune.system.array import Array, list_arrays
from autotune.system.programs import find

_UDEV_S = 30
_REFUSED = ": Resource temporarily unavailable"


def wake(uuids: Iterable[str], notice: Callable[[str], None]) -> None:
    """Let udev set what is persisted for these arrays, or exported, where a journal that is now
    gone has kept it from that. What it has set before stays as it reads now."""
    for array in list_arrays():
        rules = (rule_path(array.uuid), exported_rule(array.uuid))
        if array.uuid in uuids and any(rule.exists() for rule in rules):
            tell_udev(array, notice)


def tell_udev(
    array: Array | None,
    notice: Callable[[str], None],
    root: Path = Path("/"),
) -> None:
    """Let a running udevd have the rules as they are now, and look at the array, if it is there,
    and its members again. By that it remembers that the values are set, or forgets it with the
    rules. Disks that are not in an array that runs are left alone: at an event of theirs, mdadm
    would start an array that its owner has stopped."""
    if not (root / "run/udev/control").exists():
        notice("udevd does not run; this takes effect when it starts next.")
        return
    names = [array.name, *(member.name for member in array.members)] if array is not None else []
    try:
        _udevadm("control", "--reload")
        if not names:
            return
        devices = (str(root / "sys/class/block" / name) for name in names)
        _udevadm("trigger", "--action=change", *devices)
        # Not `trigger --settle`: a unit without a network hears nothing of udevd's events.
        _udevadm("settle", f"--timeout={_UDEV_S}")
    except (OSError, subprocess.SubprocessError) as error:
        if isinstance(error, subprocess.TimeoutExpired):
            said = f"udevadm had no answer for {error.timeout:.0f} s"
        else:
            said = str(getattr(error, "stderr", None) or error).strip()
        notice(
            f"udev could not be told ({said}): it sees the change when a device has its next "
            "event, at the latest at the next boot."
        )


def exported_rule(uuid: str, root: Path = Path("/")) -> Path:
    """Where the rules lie that were exported for an array, once they are installed."""
    return root / RULES / udev.export_name(uuid)


def tell_exported(uuid: str, notice: Callable[[str], None], root: Path = Path("/")) -> None:
    """Say so if the profile that is persisted no longer keeps an exported rule from setting its
    values."""
    exported = exported_rule(uuid, root)
    if exported.exists():
        notice(
            f"The exported rule {exported} is there, too: with no profile persisted it sets its "
            "values from now on; remove it if they are not wanted."
        )


def settle(root: Path = Path("/")) -> None:
    """Wait until udev has done what it has begun, as far as it is there and does."""
    if not (root / "run/udev/control").exists():
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        _udevadm("settle", f"--timeout={_UDEV_S}")


def _udevadm(*words: str) -> None:
    """Run udevadm. Udevd hears one at a time, and refuses who comes while another waits already, as
    when programs of LVM or a package's scripts ask it, too. `settle` then ends at once, as if all
    were done, and says so to those alone who debug (seen on systemd 252)."""
    command = [find("udevadm") or "udevadm", "--debug", *words]
    deadline = time.monotonic() + _UDEV_S
    while True:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=2 * _UDEV_S,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        last = done.stderr.strip().rpartition("\n")[2]
        refused = _REFUSED in done.stderr
        if done.returncode == 0 and not refused:
            return
        if not refused or time.monotonic() > deadline:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=last)
        time.sleep(0.1)
