"""Other programs that look at what lies on an array."""

import os
import shutil
import subprocess

from autotune.system.layers import UnseenError

TIMEOUT_S = 5.0


def output(package: str, *command: str) -> str:
    """What a program prints. Raise UnseenError if it is not there, with the package that has it,
    or if it fails. One that hangs, as on a suspended device, is left alone."""
    if not shutil.which(command[0]):
        raise UnseenError(f"needs {package} (`apt install {package}`, `dnf install {package}`)")
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    )
    try:
        said, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise UnseenError(f"{command[0]} did not answer within {TIMEOUT_S:.0f} s") from None
    if process.returncode:
        hint = "; it needs root" if os.geteuid() else ""
        raise UnseenError(f"{command[0]} failed{hint}")
    return said
