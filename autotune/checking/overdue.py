"""Arrays that nobody checks, or has not for long, since the system's own checks were turned off for
those of autotune. Changes nothing."""

from datetime import UTC, datetime
from pathlib import Path

from autotune.checking import stored
from autotune.errors import AutotuneError, UsageError
from autotune.service import CONFIG, unchecked
from autotune.service.config import Care, load_config
from autotune.service.install import checked
from autotune.suggested import STATE_DIR
from autotune.system.array import Array, list_arrays

LATE = 2.0
"""How many times `check_every` no window and no warm disk explain any more."""


def not_checked(root: Path = Path("/")) -> dict[str, str]:
    """A sentence for each array here that nobody checks or has for long, by device."""
    texts = unchecked.unchecked(root)
    if not unchecked.are_off(root):
        return texts
    try:
        config = load_config(root / CONFIG.relative_to("/"))
        units = {name: unit for unit, name in checked(root).items()}
    except UsageError:
        return texts
    for array in list_arrays(root):
        if array.name in units and array.device not in texts:
            text = _late(array, config.care(array.uuid), units[array.name], root)
            texts |= {array.device: text} if text else {}
    return texts


def _late(array: Array, care: Care, unit: str, root: Path) -> str:
    # Of the checks that a timer starts.
    path = stored.path_of(root / STATE_DIR.relative_to("/"), array.uuid)
    try:
        path.stat()
    except PermissionError:
        # It is for root to see.
        return ""
    except OSError:
        pass
    try:
        whole = stored.load(path).complete
    except AutotuneError as error:
        return f"Nobody checks {array.device}: {error}"
    since = whole.began if whole else unchecked.enabled_since(unit, root)
    if since is None or (datetime.now(UTC) - since).total_seconds() < LATE * (care.every_s or 0):
        return ""
    return (
        f"No check that began after {since.astimezone():%Y-%m-%d} has read all of {array.device}, "
        f"though check_every is {care.check_every} and the system's own checks are turned off; "
        f"`journalctl -u {unit}` says what keeps it."
    )
