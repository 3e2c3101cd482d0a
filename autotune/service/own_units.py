"""Telling the units that autotune wrote from those of somebody else, which it does not replace."""

import hashlib
import re
from pathlib import Path

from autotune.errors import RefusalError

_MARK = "# As autotune wrote it, by the checksum of what is above: "
_COMMAND = re.compile(r"^(ExecStart=)\S+/autotune ", re.M)
_EARLIER_DROP_IN = re.compile(r"(#.*\n)\[Service\]\n(ReadWritePaths=.*\n)*")
_EARLIER = frozenset(
    (
        # autotune-check@
        "3198fe0f30428bd7",
        "d66f112f80bdbfee",
        # autotune-guard@
        "34868999bbee485e",
        "bcdb368bb6cf0c1e",
        "6f736e5be9097590",
        "fe13ae5f4bc36bc6",
        # autotune-restore
        "7bf3ea55941f2eb4",
        "50dd6f73e337e738",
        "df54de6659306c61",
        "72406eda4d60f65f",
        "b5c4d278250fe48f",
        "2101d8d3a6e670c1",
        # autotune-retune
        "4daadcab37168795",
        "b982a98c6180d4a4",
        "19824881b920ac49",
        "b7c47af50e113f8b",
    )
)
"""The checksums of units that earlier versions wrote without one, the command's folder aside."""


def marked(text: str) -> str:
    """A unit's text with the line by which it is told later whether somebody has changed it."""
    return f"{text}{_MARK}{_checksum(text)}\n"


def is_ours(path: Path) -> bool:
    """Whether a file is as this or an earlier version wrote it. A link is not: it is a mask, or to
    a unit that is kept elsewhere."""
    if path.is_symlink() or not path.is_file():
        return False
    text = path.read_bytes().decode("utf-8", "replace")
    above, mark, _ = text.rpartition(_MARK)
    if mark:
        return text == marked(above)
    known = _checksum(_COMMAND.sub(r"\1autotune ", text)) in _EARLIER
    return known or bool(_EARLIER_DROP_IN.fullmatch(text))


def refuse_others(path: Path) -> None:
    """Raise RefusalError if there is something at a unit's place that autotune has not written."""
    if is_ours(path) or not (path.exists() or path.is_symlink()):
        return
    if path.is_symlink() and str(path.readlink()) == "/dev/null":
        raise RefusalError(
            f"The unit {path.name} is masked ({path}), which installing it would undo; allow it "
            f"with `systemctl unmask {path.name}`, and install again."
        )
    raise RefusalError(
        f"{path} is not as autotune wrote it, and installing would replace it; move it away, make "
        f"your changes with `systemctl edit {path.name}` (a file beside it), and install again."
    )


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
