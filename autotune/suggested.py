"""Commands that texts suggest, to be copied as they stand, and what several commands say. Light."""

import shlex
from pathlib import Path

STATE_DIR = Path("/var/lib/autotune")
"""The folder of runs, journals and profiles, unless --state-dir names another."""
NO_ARRAYS = "No md array is running on this machine."


def with_folder(command: str, state_dir: Path) -> str:
    """The command, with --state-dir where that is another than the usual one."""
    if state_dir == STATE_DIR:
        return command
    return f"{command} --state-dir {shlex.quote(str(state_dir))}"
