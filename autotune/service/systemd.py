"""Calling systemctl."""

import shutil
import subprocess
from pathlib import Path

from autotune.errors import AutotuneError, RefusalError


def runs(root: Path) -> bool:
    """Whether systemd is what runs this machine (sd_booted(3))."""
    return root == Path("/") and Path("/run/systemd/system").is_dir()


def has_systemctl() -> bool:
    return shutil.which("systemctl") is not None


def refuse_without_systemd() -> None:
    """Raise RefusalError where there is no systemctl."""
    if not has_systemctl():
        raise RefusalError("There is no systemctl here; the service needs systemd.")


def systemctl(root: Path, *words: str) -> None:
    """Call it, for a system below `root`. Raise RefusalError without it, AutotuneError if it
    fails."""
    refuse_without_systemd()
    call = ["systemctl", *([] if root == Path("/") else [f"--root={root}"]), *words]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AutotuneError(f"`{' '.join(call)}` failed: {done.stderr.strip()}")
