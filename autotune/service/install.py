"""The service's units in systemd: written, enabled, and taken out again without trace."""

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

from autotune import durable
from autotune.errors import AutotuneError, RefusalError
from autotune.export.udev import forms
from autotune.service import CONFIG
from autotune.service.config import load_config
from autotune.system import ownership
from autotune.system.array import list_arrays
from autotune.system.stack import read_stack
from autotune.untrusted import plain

SHIPPED_COMMAND = "/usr/local/bin/autotune"
FOLDER = Path("etc/systemd/system")
ENABLED = ("autotune-restore.service", "autotune-retune.timer")
GUARD = "autotune-guard@{}.service"
GUARD_DROP_IN = "array.conf"
EARLIER_DROP_IN = "ceiling.conf"
"""What an earlier version wrote for the guard of a name."""
DROP_IN = Path("autotune-retune.service.d/arrays.conf")


def units() -> dict[str, str]:
    """The text of each shipped unit, by name."""
    folder = resources.files("autotune.service.units")
    names = sorted(e.name for e in folder.iterdir() if e.name.startswith("autotune-"))
    return {name: (folder / name).read_text() for name in names}


def guarded(root: Path = Path("/")) -> dict[str, str]:
    """The arrays here that are to be guarded as they sync: the unit of each, which goes by UUID
    since names move, and the name now."""
    config = load_config(root / CONFIG.relative_to("/"))
    return {
        GUARD.format(forms(array.uuid)[0]): array.name
        for array in list_arrays(root)
        if array.uuid and config.care(array.uuid).guard_p99 is not None
    }


def files(command: Path, root: Path = Path("/")) -> dict[Path, str]:
    """What `install` writes: each unit calling this command, the mountpoints of the arrays here,
    below which scratch files may be written, and what belongs to each that is guarded."""
    mounts = {m.mountpoint for array in list_arrays(root) for m in read_stack(array).writable}
    metrics = _metrics_folder(root)
    paths = "".join(f"ReadWritePaths=-{_quoted(path)}\n" for path in (*sorted(mounts), *metrics))
    texts = {n: t.replace(SHIPPED_COMMAND, str(command)) for n, t in units().items()}
    texts[str(DROP_IN)] = f"# Where the arrays are mounted, and metrics go.\n[Service]\n{paths}"
    for unit, name in guarded(root).items():
        texts[f"{unit}.d/{GUARD_DROP_IN}"] = (
            f"# It was {name} when this was written; its ceiling is in {CONFIG}.\n[Service]\n"
            + "".join(f"ReadWritePaths=-{_quoted(path)}\n" for path in metrics)
        )
    return {root / FOLDER / name: text for name, text in texts.items()}


def _metrics_folder(root: Path) -> list[Path]:
    """Where the units have to be let write for the metrics, if these are wanted."""
    metrics = load_config(root / CONFIG.relative_to("/")).metrics
    return [Path(metrics.textfile).parent] if metrics is not None else []


def _quoted(path: Path) -> str:
    """A path as systemd.syntax(7) reads it back. RefusalError if no unit can name it."""
    if not str(path).isprintable():
        raise RefusalError(
            f"The name of the folder {plain(str(path))} has a character that cannot be printed, so "
            "the units cannot be let write there; rename it, or mount that filesystem elsewhere."
        )
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


def command() -> Path:
    """Where this autotune lies. Raise RefusalError if a unit could not call it, or others than root
    could change what root would run then."""
    found = Path(sys.argv[0]).absolute()
    if found.name != "autotune" or not found.is_file():
        raise RefusalError(
            "The units have to call the command `autotune`, so install them with that."
        )
    if any(char in str(found) for char in " %\"'\\$"):
        raise RefusalError(
            f"The name {found} cannot stand in a unit; link it to {SHIPPED_COMMAND}."
        )
    ownership.refuse_program(found)
    return found


def install(root: Path = Path("/")) -> list[Path]:
    """Write the units and enable the timer. Raise AutotuneError if that fails, nothing being left
    of a first installation."""
    wanted = files(command(), root)
    hook = load_config(root / CONFIG.relative_to("/")).notify
    if hook is not None and (found := ownership.refuse_words(hook.command)):
        raise RefusalError(f"Root would run a command for events that others can change: {found}")
    anew = not any(path.exists() for path in wanted)
    try:
        _remove_guards([path for path in _guards(root) if path not in wanted], root)
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.replace(path, text, 0o644)
        guards = list(guarded(root))
        _systemctl(root, "enable", *ENABLED, *guards)
        if _runs(root):
            _systemctl(root, "daemon-reload")
            _systemctl(root, "start", "autotune-retune.timer")
            if guards:
                # One that runs has the old ceiling.
                _systemctl(root, "restart", *guards)
    except (OSError, AutotuneError) as error:
        if anew:
            remove(root)
        why = str(error)
        if isinstance(error, OSError):
            why = f"{error.filename} cannot be written ({error.strerror}); run autotune as root."
        raise AutotuneError(f"The service was not installed: {why}") from None
    return sorted(wanted)


def _guards(root: Path) -> list[Path]:
    """The drop-ins of the guards that are installed."""
    names = (GUARD_DROP_IN, EARLIER_DROP_IN)
    return sorted(p for n in names for p in (root / FOLDER).glob(f"{GUARD.format('*')}.d/{n}"))


def _remove_guards(drop_ins: list[Path], root: Path) -> None:
    """Stop and disable the guards of these drop-ins, and remove those."""
    guards = [path.parent.name.removesuffix(".d") for path in drop_ins]
    if guards:
        if _runs(root):
            _systemctl(root, "stop", *guards)
        _systemctl(root, "disable", *guards)
    for path in drop_ins:
        path.unlink()
        _remove_if_empty(path.parent)


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def remove(root: Path = Path("/")) -> list[Path]:
    """Take the units out; return those that were there. Raise AutotuneError if one stays."""
    folder, guards = root / FOLDER, _guards(root)
    shipped = [*(folder / name for name in units()), folder / DROP_IN]
    there = [path for path in shipped if path.exists()]
    _remove_guards(guards, root)
    if there:
        if _runs(root):
            _systemctl(root, "stop", "autotune-retune.timer")
        _systemctl(root, "disable", *ENABLED)
    for path in there:
        path.unlink()
    _remove_if_empty((folder / DROP_IN).parent)
    if (there or guards) and _runs(root):
        _systemctl(root, "daemon-reload")
    return sorted((*there, *guards))


def status(root: Path = Path("/")) -> dict[str, str]:
    """How it is with each file: "as shipped", "changed" or "missing"."""
    try:
        wanted = files(command(), root)
    except RefusalError:
        wanted = files(Path(SHIPPED_COMMAND), root)
    shown = {}
    for path, text in wanted.items():
        has = path.read_text() if path.is_file() else None
        shown[str(path)] = "missing" if has is None else "as shipped" if has == text else "changed"
    return shown


def _runs(root: Path) -> bool:
    """Whether systemd is what runs this machine (sd_booted(3))."""
    return root == Path("/") and Path("/run/systemd/system").is_dir()


def _systemctl(root: Path, *words: str) -> None:
    if not shutil.which("systemctl"):
        raise RefusalError("There is no systemctl here; the service needs systemd.")
    call = ["systemctl", *([] if root == Path("/") else [f"--root={root}"]), *words]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AutotuneError(f"`{' '.join(call)}` failed: {done.stderr.strip()}")
