"""The service's units in systemd: written, enabled, and taken out again without trace."""

import contextlib
import itertools
import sys
from importlib import resources
from pathlib import Path

from autotune import durable
from autotune.errors import AutotuneError, RefusalError
from autotune.export.udev import forms
from autotune.service import CONFIG
from autotune.service.config import load_config
from autotune.service.metrics_files import remove_all
from autotune.service.own_units import is_ours, marked, refuse_others
from autotune.service.systemd import has_systemctl, refuse_without_systemd, runs, systemctl
from autotune.system import ownership
from autotune.system.array import Array, list_arrays
from autotune.system.stack import read_stack
from autotune.untrusted import plain

SHIPPED_COMMAND = "/usr/local/bin/autotune"
FOLDER = Path("etc/systemd/system")
PRIVATE = ("/tmp", "/var/tmp")
"""What the units have for themselves (PrivateTmp=)."""
ENABLED = ("autotune-restore.service", "autotune-restore.timer", "autotune-retune.timer")
GUARD = "autotune-guard@{}.service"
ARRAY_DROP_IN = "array.conf"
EARLIER_DROP_IN = "ceiling.conf"
"""What an earlier version wrote for the guard of a name."""
CHECK = "autotune-check@{}.service"
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
        if no_sync(array) is None and config.care(array.uuid).guard_p99 is not None
    }


def checked(root: Path = Path("/")) -> dict[str, str]:
    """The arrays here that the service is to check, of those that can be: as `guarded`."""
    config = load_config(root / CONFIG.relative_to("/"))
    return {
        CHECK.format(forms(array.uuid)[0]): array.name
        for array in list_arrays(root)
        if no_sync(array) is None and config.care(array.uuid).check_every is not None
    }


def no_sync(array: Array) -> str | None:
    """Why there is no sync to guard and no check to make that autotune may touch; None if there
    is."""
    if not has_checks(array):
        return "it has no redundancy"
    if array.metadata.startswith("external"):
        return "its metadata are external (firmware RAID)"
    return None if array.uuid else "it has no UUID"


def has_checks(array: Array) -> bool:
    """Whether md has anything to compare on it."""
    return array.redundant and array.raid_disks > 1


def _absent(root: Path) -> set[Path]:
    """The drop-ins of arrays that do not run now, and which the configuration names."""
    cares = load_config(root / CONFIG.relative_to("/")).arrays
    here = {array.uuid for array in list_arrays(root)}
    units = [
        unit.format(forms(uuid)[0])
        for uuid, care in cares.items()
        for unit, wants in ((GUARD, care.guard_p99), (CHECK, care.check_every))
        if uuid not in here and wants is not None
    ]
    return {root / FOLDER / f"{unit}.d" / ARRAY_DROP_IN for unit in units}


def files(command: Path, root: Path = Path("/")) -> dict[Path, str]:
    """What `install` writes: each unit calling this command, the mountpoints of the arrays here,
    below which scratch files may be written, and what each needs that is guarded or checked."""
    mounts = {m.mountpoint for array in list_arrays(root) for m in read_stack(array).writable}
    metrics = _metrics_folder(root)
    paths = "".join(f"ReadWritePaths=-{_quoted(path)}\n" for path in (*sorted(mounts), *metrics))
    texts = {n: t.replace(SHIPPED_COMMAND, str(command)) for n, t in units().items()}
    texts[str(DROP_IN)] = f"# Where the arrays are mounted, and metrics go.\n[Service]\n{paths}"
    for unit, name in {**guarded(root), **checked(root)}.items():
        texts[f"{unit}.d/{ARRAY_DROP_IN}"] = (
            f"# It was {name} when this was written; what is wanted is in {CONFIG}.\n[Service]\n"
            + "".join(f"ReadWritePaths=-{_quoted(path)}\n" for path in metrics)
        )
    return {root / FOLDER / name: marked(text) for name, text in texts.items()}


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
    # Its libraries are where the interpreter of its environment is.
    for place in (found, found.resolve(), Path(sys.prefix)):
        if any(place.is_relative_to(folder) for folder in PRIVATE):
            raise RefusalError(
                f"The units have a /tmp and a /var/tmp of their own and would not see {place}; "
                "install autotune elsewhere, such as in /opt."
            )
    return found


def install(root: Path = Path("/")) -> list[Path]:
    """Write the units and enable them. Raise RefusalError for what somebody else has in their
    places, AutotuneError if it fails, nothing being left of a first installation."""
    refuse_without_systemd()
    wanted = files(command(), root)
    for path in wanted:
        refuse_others(path)
    hook = load_config(root / CONFIG.relative_to("/")).notify
    if hook is not None and (found := ownership.refuse_words(hook.command)):
        raise RefusalError(f"Root would run a command for events that others can change: {found}")
    anew = not any(path.exists() for path in wanted)
    try:
        stay = wanted.keys() | _absent(root)
        _remove_instances([path for path in _drop_ins(root) if path not in stay], root)
        if stale := by_name(root):
            if runs(root):
                systemctl(root, "stop", *stale)
            systemctl(root, "disable", *stale)
        for path, text in wanted.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            durable.replace(path, text, 0o644)
        guards, timers = list(guarded(root)), [timer(unit) for unit in checked(root)]
        systemctl(root, "enable", *ENABLED, *guards, *timers)
        if runs(root):
            systemctl(root, "daemon-reload")
            systemctl(root, "start", *ENABLED[1:], *timers)
            if guards:
                # One that runs has the old ceiling.
                systemctl(root, "restart", *guards)
    except (OSError, AutotuneError) as error:
        if anew:
            remove(root, by_hand=False)
        why = str(error)
        if isinstance(error, OSError):
            todo = "run autotune as root" if isinstance(error, PermissionError) else "correct that"
            why = f"{error.filename} cannot be written ({error.strerror}); {todo}."
        raise AutotuneError(f"The service was not installed: {why}") from None
    return sorted(wanted)


def timer(unit: str) -> str:
    """What starts a check."""
    return f"{unit.removesuffix('.service')}.timer"


def is_enabled(root: Path = Path("/")) -> bool:
    """Whether a unit is enabled that works by the configuration."""
    names = (ENABLED[-1], GUARD.format("*"), timer(CHECK.format("*")))
    return any(any((root / FOLDER).glob(f"*.wants/{name}")) for name in names)


def by_name(root: Path = Path("/")) -> list[str]:
    """The enabled guards that go by the name of an array, as in an earlier version."""
    found = {path.name for path in (root / FOLDER).glob(f"*.wants/{GUARD.format('*')}")}
    return sorted(name for name in found if ":" not in name)


def _drop_ins(root: Path) -> list[Path]:
    """Those of the guards and checks that are installed, one each."""
    folder = root / FOLDER
    names = [f"{GUARD.format('*')}.d/{name}" for name in (ARRAY_DROP_IN, EARLIER_DROP_IN)]
    return sorted(
        p for n in (*names, f"{CHECK.format('*')}.d/{ARRAY_DROP_IN}") for p in folder.glob(n)
    )


def _remove_instances(drop_ins: list[Path], root: Path) -> None:
    """Stop and disable the guards and checks of these drop-ins, and remove those."""
    services = [path.parent.name.removesuffix(".d") for path in drop_ins]
    checks = [name for name in services if name.startswith(CHECK.partition("{")[0])]
    enabled = [timer(name) if name in checks else name for name in services]
    if services and has_systemctl():
        if runs(root):
            systemctl(root, "stop", *enabled, *checks)
        systemctl(root, "disable", *enabled)
    for path in drop_ins:
        if _is_kept(path):
            path.replace(_kept(path))
        else:
            path.unlink()
        _remove_if_empty(path.parent)


def _remove_by_hand(root: Path) -> list[Path]:
    """Stop the guards and checks that somebody has enabled or started without us, and disable
    them. Return their links."""
    if runs(root) and has_systemctl():
        checks = CHECK.format("*")
        systemctl(root, "stop", GUARD.format("*"), timer(checks), checks)
    folder = root / FOLDER
    links = [
        p for each in (GUARD, timer(CHECK)) for p in folder.glob(f"*.wants/{each.format('*')}")
    ]
    for link in links:
        # systemctl disables nothing whose template has gone.
        link.unlink()
        _remove_if_empty(link.parent)
    return links


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _installed(root: Path) -> list[Path]:
    """What there is in the places of the shipped units. A link stays, as no file of ours is one."""
    paths = (root / FOLDER / name for name in (*units(), str(DROP_IN)))
    return [path for path in paths if path.is_file() and not path.is_symlink()]


def others(root: Path = Path("/")) -> dict[Path, Path]:
    """What somebody has changed or put in the places of units, and where `remove` keeps it."""
    return {p: _kept(p) for p in (*_installed(root), *_drop_ins(root)) if _is_kept(p)}


def _is_kept(path: Path) -> bool:
    """Whether somebody has changed it. Of an earlier version's drop-in nothing can tell."""
    return path.name != EARLIER_DROP_IN and not is_ours(path)


def _kept(path: Path) -> Path:
    """A name beside it that nothing has yet."""
    names = itertools.chain([".kept"], (f".kept.{n}" for n in itertools.count(2)))
    paths = (path.with_name(path.name + name) for name in names)
    return next(free for free in paths if not free.exists())


def remove(root: Path = Path("/"), *, by_hand: bool = True) -> list[Path]:
    """Take the units out, with guards and checks that were enabled `by_hand`; return those that
    were there. Raise AutotuneError if one stays."""
    folder, instances = root / FOLDER, _drop_ins(root)
    there, kept = _installed(root), others(root)
    _remove_instances(instances, root)
    links = _remove_by_hand(root) if by_hand else []
    # Not all of an earlier version's are, nor of a removal that was cut.
    enabled = [name for name in ENABLED if folder / name in there]
    if enabled and has_systemctl():
        timers = [name for name in enabled if name.endswith(".timer")]
        if timers and runs(root):
            systemctl(root, "stop", *timers)
        systemctl(root, "disable", *enabled)
    for path in there:
        if path in kept:
            path.replace(kept[path])
        else:
            path.unlink()
    for part in (*folder.glob(".autotune-*.part"), *folder.glob("autotune-*.d/.*.part")):
        # Of an installation that was cut.
        part.unlink()
    for drop_ins in folder.glob("autotune-*.d"):
        _remove_if_empty(drop_ins)
    if (there or instances or links) and runs(root):
        systemctl(root, "daemon-reload")
    metrics = _remove_metrics(root) if there or instances else []
    return sorted((*there, *instances, *links, *metrics))


def _remove_metrics(root: Path) -> list[Path]:
    """Remove the metrics, which nobody writes any more: they would be alarming for ever."""
    # Where the configuration cannot be read, it is not known where they are.
    with contextlib.suppress(AutotuneError, OSError):
        metrics = load_config(root / CONFIG.relative_to("/")).metrics
        return remove_all(root / metrics.textfile.lstrip("/")) if metrics is not None else []
    return []


def status(root: Path = Path("/")) -> dict[str, str]:
    """How it is with each file: "as shipped", "changed" or "missing"."""
    try:
        wanted = files(command(), root)
    except RefusalError:
        wanted = files(Path(SHIPPED_COMMAND), root)
    shown = {}
    for path, text in wanted.items():
        has = path.read_bytes() if path.is_file() else None
        same = has == text.encode()
        shown[str(path)] = "missing" if has is None else "as shipped" if same else "changed"
    return shown
