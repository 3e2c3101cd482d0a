"""The distribution's own checks of arrays, turned off in favour of ours and given back.

What each was like is on disk before it is changed, so a crash in between loses nothing: whoever
gives back looks at what is there. Timers are masked, which leaves alone whether they are enabled;
crontabs have a switch in a file of the administrator's.
"""

import re
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from autotune import durable, named_file
from autotune.errors import AutotuneError
from autotune.preflight.check_schedule import SWITCHES, Switch, is_masked, scheduled
from autotune.service.systemd import runs, systemctl
from autotune.untrusted import MOST_KEPT_BYTES, first_fault, read_file

RECORD = Path("etc/autotune/taken-over.json")
_MODE = 0o644
_BYTES = "latin-1"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Timer(_Strict):
    """A timer of systemd's that is masked. `active`: it was waiting for its time."""

    kind: Literal["timer"] = "timer"
    name: str
    active: bool


class File(_Strict):
    """A file with a switch: its text as it was found (None: there was none), and as it was made.
    A character is a byte, as nobody says what coding the file is in."""

    kind: Literal["file"] = "file"
    source: str
    before: str | None
    after: str


class TakenOver(_Strict):
    """Everything that was taken over."""

    changes: tuple[Annotated[Timer | File, Field(discriminator="kind")], ...] = ()


def found(root: Path = Path("/")) -> list[str]:
    """What starts checks on this machine beside autotune: "/etc/cron.d/mdadm" or a timer."""
    return [each.source for each in scheduled(root, datetime.now().astimezone())]


def take(root: Path = Path("/")) -> list[str]:
    """Turn off what starts checks; return what was turned off. Raise AutotuneError if something
    cannot be turned off, all being as before."""
    before = _load(root)
    changes = [_change(source, root) for source in found(root)]
    if not changes:
        return []
    _save(TakenOver(changes=(*before.changes, *changes)), root)
    try:
        for change in changes:
            _turn_off(change, root)
    except (AutotuneError, OSError) as error:
        for change in reversed(changes):
            _give_back(change, root)
        _save(before, root)
        raise AutotuneError(f"The checks of the system were not turned off: {error}") from None
    return [change.name if isinstance(change, Timer) else change.source for change in changes]


def give_back(root: Path = Path("/")) -> list[str]:
    """Turn on again what was turned off; return that. Raise AutotuneError if something cannot be,
    which is tried again the next time."""
    record = _load(root)
    # The newest first: what was found before all of it comes last.
    try:
        given = [name for change in reversed(record.changes) if (name := _give_back(change, root))]
    except OSError as error:
        raise AutotuneError(
            f"The checks of the system were not turned on again: {error}; correct that, and run "
            "`autotune service remove` once more."
        ) from None
    _save(TakenOver(), root)
    for file in (RECORD, *(Path(switch.file) for switch in SWITCHES.values())):
        # Of what was cut.
        durable.beside((root / file).resolve()).unlink(missing_ok=True)
    return given


def _change(source: str, root: Path) -> Timer | File:
    if source not in SWITCHES:
        return Timer(name=source, active=_is_active(source, root))
    switch = SWITCHES[source]
    try:
        before = _read(root / switch.file)
    except FileNotFoundError:
        before = None
    return File(source=source, before=before, after=_switched(before or "", switch, switch.off))


def _switched(text: str, switch: Switch, value: str) -> str:
    """A file of the shell's with another value of a switch, its other lines as they are."""
    line, pattern = f"{switch.key}={value}", f"{switch.start}.*$"
    if re.search(pattern, text, re.M):
        # With its last line ended, whoever adds one does not make it a part of that.
        return re.sub(pattern, line, text, flags=re.M).rstrip("\n") + "\n"
    return f"{text.rstrip()}\n{line}\n".lstrip("\n")


def _turn_off(change: Timer | File, root: Path) -> None:
    if isinstance(change, Timer):
        systemctl(root, "mask", *(["--now"] if runs(root) else []), change.name)
        return
    path = root / SWITCHES[change.source].file
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, change.after)


def _give_back(change: Timer | File, root: Path) -> str:
    """Turn one on again; its name, or "" if it was on, or is as somebody else has made it since."""
    if isinstance(change, Timer):
        masked = is_masked(root, change.name)
        if masked:
            systemctl(root, "unmask", change.name)
        # One that is not masked any more may be of a removal that was cut here.
        stands = change.active and runs(root) and not _is_active(change.name, root)
        if stands:
            systemctl(root, "start", change.name)
        return change.name if masked or stands else ""
    switch = SWITCHES[change.source]
    path = root / switch.file
    text = _read(path) if path.exists() else None
    if text == change.before or text is None:
        return ""
    if text == change.after and change.before is None:
        path.unlink()
        return change.source
    if text == change.after and change.before is not None:
        _write(path, change.before)
        return change.source
    return _switch_back(path, text, change, switch)


def _switch_back(path: Path, text: str, change: File, switch: Switch) -> str:
    """The file has other changes since: only its switch goes back, if it still is as we set it."""
    ours = rf"^[ \t]*{switch.key}={switch.off}[ \t]*$"
    if not re.search(ours, text, re.M):
        return ""
    earlier = re.findall(f"{switch.start}.*$", change.before or "", re.M)
    line = earlier[-1] if earlier else ""
    _write(path, re.sub(ours, lambda _: line, text, flags=re.M))
    return change.source


def _read(path: Path) -> str:
    return path.read_bytes().decode(_BYTES)


def _write(path: Path, text: str) -> None:
    # A link, as a configuration management makes it, stays one; mode and owner stay, too.
    named_file.save(path, text, _MODE, _BYTES)


def _is_active(timer: str, root: Path) -> bool:
    if not runs(root):
        return False
    done = subprocess.run(["systemctl", "is-active", "--quiet", timer], check=False)
    return done.returncode == 0


def _load(root: Path) -> TakenOver:
    path = root / RECORD
    try:
        return TakenOver.model_validate_json(read_file(path, MOST_KEPT_BYTES))
    except FileNotFoundError:
        return TakenOver()
    except ValidationError as error:
        fault = f"is damaged ({first_fault(error)})"
    except (ValueError, OSError) as error:
        fault = f"cannot be read ({error})"
    raise AutotuneError(
        f"{path}, which says which checks of the system were turned off, {fault}; turn them on by "
        "hand, and remove it."
    )


def _save(record: TakenOver, root: Path) -> None:
    path = root / RECORD
    if not record.changes:
        path.unlink(missing_ok=True)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(path, record.model_dump_json(indent=1) + "\n", _MODE)
    except OSError as error:
        raise AutotuneError(
            f"{path} cannot be written ({error.strerror}), so nothing was turned off."
        ) from None
