"""Notifying the administrator: a line in the log, and a command of their own."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.system import ownership

if TYPE_CHECKING:
    from autotune.service.config import Event, Notify

TIMEOUT_S = 60.0
LOG_TIMEOUT_S = 10.0
MARGIN_S = 15.0
"""systemd ends the command itself."""
SYSTEMD_RUN = "systemd-run"
IDENTIFIER = "autotune-notify"
STDERR = 2
"""What the command prints is nobody's answer."""


def log(outcome: str, device: str, uuid: str, text: str) -> None:
    """Write to the journal of systemd, with fields to filter by (`journalctl
    AUTOTUNE_OUTCOME=adopted`), if a unit of systemd's is what runs this."""
    if "INVOCATION_ID" not in os.environ or not shutil.which("logger"):
        return
    fields = {
        "MESSAGE": f"{device}: {outcome}. {text}",
        "PRIORITY": "4" if outcome in ("failed", "reverted", "mismatched") else "5",
        "SYSLOG_IDENTIFIER": "autotune",
        "AUTOTUNE_OUTCOME": outcome,
        "AUTOTUNE_DEVICE": device,
        "AUTOTUNE_UUID": uuid,
    }
    # A line is a field, so there can be no other lines.
    lines = "".join(f"{name}={' '.join(value.split())}\n" for name, value in fields.items())
    # The journal may hang with the disk that it is on.
    with contextlib.suppress(subprocess.TimeoutExpired):
        command = ["logger", "--journald"]
        subprocess.run(command, input=lines.encode(), check=False, timeout=LOG_TIMEOUT_S)


def notify(event: "Event", device: str, uuid: str, text: str, hook: "Notify | None") -> str:
    """Run the administrator's command for an event, if one is wanted. Return what went wrong
    with it, in a sentence; empty if nothing did. A hook that fails changes nothing else."""
    if hook is None or event not in hook.on:
        return ""
    return run_command(hook.command, event, device, uuid, text)


def run_command(command: Sequence[str], event: "Event", device: str, uuid: str, text: str) -> str:
    """Run it for an event, in a unit of its own where systemd runs this. As `notify`."""
    if found := ownership.refuse_words(command):
        return f"The command {command[0]} was not run for the event: {found}"
    data = json.dumps({"event": event, "device": device, "uuid": uuid, "text": text}).encode()
    fault = _run_in_a_unit(command, data) if _under_systemd() else _run(command, data)
    return f"The command {command[0]} {fault}." if fault else ""


def _run(
    command: Sequence[str], data: bytes, timeout_s: float = TIMEOUT_S, name: str = "ended with"
) -> str:
    """Run it with the data on its standard input; return what went wrong, if anything did."""
    try:
        done = subprocess.run(command, input=data, stdout=STDERR, timeout=timeout_s, check=False)
    except (OSError, ValueError) as error:
        return f"cannot be run: {error}"
    except subprocess.TimeoutExpired:
        return f"took longer than {timeout_s:.0f} s and was ended"
    return f"{name} exit code {done.returncode}" if done.returncode else ""


def _run_in_a_unit(command: Sequence[str], data: bytes) -> str:
    failed = f"failed in its unit (`journalctl -t {IDENTIFIER}` says more):"
    return _run(in_a_unit(command, data), b"", TIMEOUT_S + MARGIN_S, failed)


def in_a_unit(command: Sequence[str], data: bytes) -> list[str]:
    """What runs a command in a unit of its own, outside of the sandbox of ours, with the data on
    its standard input, and waits for its end. All goes over the bus, so there is no file to leave
    behind, and none that others could put there."""
    properties = (
        "Type=oneshot",
        f"TimeoutStartSec={TIMEOUT_S:.0f}",
        "StandardInput=data",
        f"StandardInputData={base64.b64encode(data).decode()}",
        f"SyslogIdentifier={IDENTIFIER}",
    )
    # systemd puts the environment in the place of $NAME; $$ is a plain $.
    words = (command[0], *(word.replace("$", "$$") for word in command[1:]))
    how = ("--quiet", "--collect", "--description=autotune's command for events")
    return [SYSTEMD_RUN, *how, *(f"--property={each}" for each in properties), "--", *words]


def _under_systemd() -> bool:
    """Whether a unit of systemd's is what runs this, and can start another one."""
    return (
        "INVOCATION_ID" in os.environ
        and Path("/run/systemd/system").is_dir()
        and shutil.which(SYSTEMD_RUN) is not None
    )
