"""The service's units in systemd: written, enabled, and taken out again without trace."""

import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

from autotune.array import list_arrays
from autotune.errors import AutotuneError, RefusalError
from autotune.stack import read_stack

SHIPPED_COMMAND = "/usr/local/bin/autotune"
FOLDER = Path("etc/systemd/system")
ENABLED = ("autotune-restore.service", "autotune-retune.timer")
DROP_IN = Path("autotune-retune.service.d/arrays.conf")


def units() -> dict[str, str]:
    """The text of each shipped unit, by name."""
    folder = resources.files("autotune.service.units")
    names = sorted(e.name for e in folder.iterdir() if e.name.startswith("autotune-"))
    return {name: (folder / name).read_text() for name in names}


def files(command: Path, root: Path = Path("/")) -> dict[Path, str]:
    """What `install` writes: each unit calling this command, and the mountpoints of the arrays
    here, below which scratch files may be written."""
    mounts = {m.mountpoint for array in list_arrays(root) for m in read_stack(array).writable}
    paths = "".join(f"ReadWritePaths=-{_quoted(mount)}\n" for mount in sorted(mounts))
    texts = {n: t.replace(SHIPPED_COMMAND, str(command)) for n, t in units().items()}
    texts[str(DROP_IN)] = f"# Where the arrays are mounted.\n[Service]\n{paths}"
    return {root / FOLDER / name: text for name, text in texts.items()}


def _quoted(path: Path) -> str:
    """A path as systemd.syntax(7) reads it back."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{text}"'


def command() -> Path:
    """Where this autotune lies. Raise RefusalError if a unit could not call it."""
    found = Path(sys.argv[0]).absolute()
    if found.name != "autotune" or not found.is_file():
        raise RefusalError(
            "The units have to call the command `autotune`, so install them with that."
        )
    if any(char in str(found) for char in " %\"'\\$"):
        raise RefusalError(
            f"The name {found} cannot stand in a unit; link it to {SHIPPED_COMMAND}."
        )
    return found


def install(root: Path = Path("/")) -> list[Path]:
    """Write the units and enable the timer. Raise AutotuneError, nothing being left, if that
    fails."""
    wanted = files(command(), root)
    try:
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o644)
        _systemctl(root, "enable", *ENABLED)
        if _runs(root):
            _systemctl(root, "daemon-reload")
            _systemctl(root, "start", "autotune-retune.timer")
    except (OSError, AutotuneError) as error:
        remove(root)
        raise AutotuneError(f"The service was not installed: {error}") from None
    return list(wanted)


def remove(root: Path = Path("/")) -> list[Path]:
    """Take the units out; return those that were there. Raise AutotuneError if one stays."""
    there = [path for path in files(Path(SHIPPED_COMMAND), root) if path.exists()]
    if there:
        if _runs(root):
            _systemctl(root, "stop", "autotune-retune.timer")
        _systemctl(root, "disable", *ENABLED)
    for path in there:
        path.unlink()
    drop_in = root / FOLDER / DROP_IN.parent
    if drop_in.is_dir() and not any(drop_in.iterdir()):
        drop_in.rmdir()
    if there and _runs(root):
        _systemctl(root, "daemon-reload")
    return there


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
