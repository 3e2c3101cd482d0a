"""The udevd of this machine, which sets what is persisted."""

import contextlib
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from autotune.deploy.persisted import RULES, rule_path
from autotune.export import udev
from autotune.system.array import Array, list_arrays
from autotune.system.programs import find

_UDEV_S = 30


def wake(uuids: Iterable[str], notice: Callable[[str], None]) -> None:
    """Let udev set what is persisted for these arrays, where a journal that is now gone has kept
    it from that. What it has set before stays as it reads now."""
    for array in list_arrays():
        if array.uuid in uuids and rule_path(array.uuid).exists():
            tell_udev(array.uuid, array, notice)


def tell_udev(
    uuid: str,
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
        said = str(getattr(error, "stderr", None) or error).strip()
        notice(f"udev could not be told ({said}); the rule takes effect at the next boot.")


def tell_exported(uuid: str, notice: Callable[[str], None], root: Path = Path("/")) -> None:
    """Say so if the profile that is persisted no longer keeps an exported rule from setting its
    values."""
    exported = root / RULES / udev.export_name(uuid)
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
    subprocess.run(
        [find("udevadm") or "udevadm", *words],
        capture_output=True,
        text=True,
        timeout=2 * _UDEV_S,
        check=True,
    )
