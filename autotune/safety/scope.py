"""A control group of the guardian's own, where systemd runs.

`systemctl kill` and systemd-oomd end whole control groups, the tuner and its guardian alike. A
scope is a unit of systemd's for a process that somebody else has started. Light.
"""

import contextlib
import os
import subprocess
from pathlib import Path

from autotune.system import sysfs

TIMEOUT_S = 1.0
STOP_S = 10.0
_MANAGER = (
    "org.freedesktop.systemd1",
    "/org/freedesktop/systemd1",
    "org.freedesktop.systemd1.Manager",
)


def command(pid: int) -> tuple[str, ...]:
    """What asks systemd to move a process into a new scope. (`systemd-run --scope` would have to
    start it, and could so keep it from starting.)"""
    properties = (
        *("Description", "s", f"Guardian of the autotune process {os.getpid()}"),
        *("PIDs", "au", "1", str(pid)),
        *("CollectMode", "s", "inactive-or-failed"),
        # It ends when its work is done. A machine that goes down, which undoes all, need not wait.
        *("TimeoutStopUSec", "t", f"{STOP_S * 1_000_000:.0f}"),
    )
    return (
        *("busctl", "call", "--quiet", f"--timeout={TIMEOUT_S:g}"),
        *(*_MANAGER, "StartTransientUnit", "ssa(sv)a(sa(sv))"),
        *(f"autotune-guardian-{pid}.scope", "fail", "4", *properties, "0"),
    )


def runs_here(root: Path = Path("/")) -> bool:
    """Whether systemd is process 1 of those seen here. In a container with the host's /run it is
    not, and there a process has another number than on the host."""
    is_first = sysfs.read_or(root / "proc/1/comm", "") == "systemd"
    return is_first and (root / "run/systemd/system").is_dir()


def move(pid: int) -> None:
    """Give a process a scope, if that can be had at once; else it stays where it is."""
    if not runs_here():
        return
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(
            command(pid),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
