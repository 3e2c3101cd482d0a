"""Commands that a text suggests: each works as it stands when it is copied. Light."""

import shlex
from pathlib import Path

STATE_DIR = Path("/var/lib/autotune")
"""The folder of runs, journals and profiles, unless --state-dir names another."""


def with_folder(command: str, state_dir: Path) -> str:
    """The command, with --state-dir where that is another than the usual one."""
    if state_dir == STATE_DIR:
        return command
    return f"{command} --state-dir {shlex.quote(str(state_dir))}"
