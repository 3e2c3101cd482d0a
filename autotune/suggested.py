"""Commands that texts suggest, to be copied as they stand, and what several commands say. Light."""

import re
import shlex
import shutil
from pathlib import Path

STATE_DIR = Path("/var/lib/autotune")
"""The folder of runs, journals and profiles, unless --state-dir names another."""
NO_ARRAYS = "No md array is running on this machine."
_COMMAND = re.compile(r"`autotune (?!(?:show|lab|config|service)\b)[a-z][^`]*`")
"""Between backticks, one that takes --state-dir."""
_named = STATE_DIR


def as_root(command: str) -> str:
    """The command with sudo, where there is one. To be put behind a pipe: what stands before the
    whole line does not reach that far."""
    return f"sudo {command}" if shutil.which("sudo") else command


def set_by_hand(file: Path | str, value: object) -> str:
    """A command that writes a value to a file of root's, whoever gives it."""
    return f"echo {value} | {as_root(f'tee {file}')}"


def name_folder(state_dir: Path) -> Path:
    """Have `in_folder` add this folder from now on: the one that the command at work was given."""
    global _named  # noqa: PLW0603
    _named = state_dir
    return state_dir


def in_folder(text: str) -> str:
    """The text, with --state-dir in each command between backticks that lacks it, where that is
    not the usual folder."""
    return _COMMAND.sub(lambda found: f"`{with_folder(found[0].strip('`'), _named)}`", text)


def with_folder(command: str, state_dir: Path) -> str:
    """The command, with --state-dir where that is another than the usual one."""
    if state_dir == STATE_DIR or "--state-dir" in command:
        return command
    return f"{command} --state-dir {shlex.quote(str(state_dir))}"
