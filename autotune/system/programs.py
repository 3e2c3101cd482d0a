"""Other programs that are asked what there is. One that cannot be asked is told from one that
has nothing to say."""

import os
import shutil
import subprocess

TIMEOUT_S = 5.0
MDADM_S = 20.0
"""It reads a member, which may be busy."""
ADMINISTRATORS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where mdadm and its like lie; a plain `su` leaves these folders out of the PATH."""


class UnseenError(Exception):
    """What a device or a program does cannot be seen; the text says why."""


def find(name: str) -> str | None:
    """The path of a program, whether or not the PATH has the administrators' folders."""
    path = os.environ.get("PATH") or os.defpath
    return shutil.which(name, path=os.pathsep.join((path, *ADMINISTRATORS)))


def output(package: str, *command: str, timeout_s: float | None = None) -> str:
    """What a program prints. Raise UnseenError if it is not there, with the package that has it,
    or if it fails. One that hangs, as on a suspended device, is left alone."""
    name, limit_s = command[0], timeout_s or TIMEOUT_S
    found = find(name)
    if found is None:
        raise UnseenError(f"needs {package} (`apt install {package}`, `dnf install {package}`)")
    try:
        process = subprocess.Popen(
            (found, *command[1:]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        raise UnseenError(f"{name} cannot be started ({error.strerror})") from None
    try:
        said, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise UnseenError(f"{name} did not answer within {limit_s:g} s") from None
    if process.returncode:
        hint = "; it needs root" if os.geteuid() else ""
        raise UnseenError(f"{name} failed{hint}")
    return said


def mdadm(mode: str, name: str) -> dict[str, str]:
    """What mdadm says of a device by its kernel name, by key. `mode`: "--detail" of an array,
    "--examine" of a member. Raise UnseenError if it cannot be asked, or fails."""
    command = ("mdadm", mode, "--export", f"/dev/{name.replace('!', '/')}")
    lines = output("mdadm", *command, timeout_s=MDADM_S).splitlines()
    return {key: value for key, is_one, value in (line.partition("=") for line in lines) if is_one}
