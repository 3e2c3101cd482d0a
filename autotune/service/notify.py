"""Telling the administrator: a line in the log, and a command of his own."""

import json
import os
import shutil
import subprocess
import sys

from autotune.service.config import Event, Notify

TIMEOUT_S = 60.0


def log(outcome: str, device: str, uuid: str, text: str) -> None:
    """Write to the journal of systemd, with fields to filter by (`journalctl
    AUTOTUNE_OUTCOME=adopted`), if a unit of systemd's is what runs this."""
    if "INVOCATION_ID" not in os.environ or not shutil.which("logger"):
        return
    fields = {
        "MESSAGE": f"{device}: {outcome}. {text}",
        "PRIORITY": "4" if outcome in ("failed", "reverted") else "5",
        "SYSLOG_IDENTIFIER": "autotune",
        "AUTOTUNE_OUTCOME": outcome,
        "AUTOTUNE_DEVICE": device,
        "AUTOTUNE_UUID": uuid,
    }
    # A line is a field, so there can be no other lines.
    lines = "".join(f"{name}={' '.join(value.split())}\n" for name, value in fields.items())
    subprocess.run(["logger", "--journald"], input=lines.encode(), check=False)


def notify(event: Event, device: str, uuid: str, text: str, hook: Notify | None) -> str:
    """Run the administrator's command for an event, if one is wanted. Return what went wrong
    with it, in a sentence; empty if nothing did. A hook that fails changes nothing else."""
    if hook is None or event not in hook.on:
        return ""
    document = {"event": event, "device": device, "uuid": uuid, "text": text}
    try:
        done = subprocess.run(
            hook.command,
            input=json.dumps(document).encode(),
            stdout=sys.stderr,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, ValueError) as error:
        return f"The command {hook.command[0]} cannot be run: {error}."
    except subprocess.TimeoutExpired:
        return f"The command {hook.command[0]} took longer than {TIMEOUT_S:.0f} s and was ended."
    if done.returncode:
        return f"The command {hook.command[0]} ended with exit code {done.returncode}."
    return ""
