"""Options and messages that several commands share."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from autotune import suggested
from autotune.cli import complete
from autotune.cli.terminal import LOG_FORMAT, LOG_FORMATS, notice, say
from autotune.errors import AutotuneError, UsageError

if TYPE_CHECKING:
    from autotune.problem.setting import Setting


def _state_folder(folder: Path) -> Path:
    """The folder, which texts and locks name from now on, a line each; whole, so that the commands
    in them work in any folder."""
    folder = folder.absolute()
    if len(str(folder).splitlines()) > 1:
        raise UsageError("--state-dir: The name of the folder has a line break; choose another.")
    return suggested.name_folder(folder)


StateDir = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        envvar="AUTOTUNE_STATE_DIR",
        callback=_state_folder,
        help="Folder of runs, journals and profiles.",
    ),
]
Device = Annotated[
    str,
    typer.Argument(
        metavar="DEVICE", autocompletion=complete.devices, help="The array, such as /dev/md0."
    ),
]
DeviceOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="DEVICE", autocompletion=complete.devices, help="The array. [default: all]"
    ),
]
Destructive = Annotated[
    str | None,
    typer.Option(
        metavar="DEVICE",
        autocompletion=complete.devices,
        help="Write to the raw array (name it again): its data is lost.",
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder for the scratch file, on a filesystem on the array. [default: one that "
        "`autotune doctor` names]",
    ),
]
Ceilings = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LIMIT",
        help="Limit for the p99: 20ms, 1.5x (of the idle array's), or PHASE=20ms; repeatable. "
        "[default: 10 % above that of the original settings, up to 50 % where it is noisy]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Persist = Annotated[
    bool,
    typer.Option("--persist", help="Have udev set the values again at each boot and assembly."),
]


def _known_format(name: str) -> str:
    """Whether there is one of this name; `choose_log_format` has set it up by now."""
    if name not in LOG_FORMATS:
        raise UsageError(f'There is no log format "{name}"; choose {" or ".join(LOG_FORMATS)}.')
    return name


LogFormat = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        envvar=LOG_FORMAT,
        callback=_known_format,
        help="Messages on standard error: text, or json (one object per line).",
    ),
]
Parsed = TypeVar("Parsed")


def read(option: str, parse: Callable[[str], Parsed], text: str) -> Parsed:
    """The value of an option. Raise UsageError that names the option if it is none."""
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


STATE_DIR = suggested.STATE_DIR


def in_a_folder(file: Path | None) -> Path | None:
    """A file to write, as it was named. UsageError if its folder is not there: a folder that is
    made for a mistyped name helps nobody."""
    if file is not None and not file.parent.is_dir():
        raise UsageError(f"There is no folder {file.parent}; make it, or name another file.")
    return file


def persist_applied(
    knobs: "Setting", device: str, state_dir: Path, document: Mapping[str, object]
) -> tuple[Path, ...]:
    """Persist the profile with these values that has just been applied; return the files. Raise
    AutotuneError, with the document of what was done, if that fails: it stays in force then."""
    from autotune.deploy import persist
    from autotune.system.array import find_array

    try:
        files = persist.persist_applied(knobs, find_array(device), state_dir, notice)
    except AutotuneError as error:
        raise AutotuneError(
            f"The profile is applied to {device} until the next reboot, but it is not persisted: "
            f"{error}",
            document,
        ) from None
    if files is None:
        raise AutotuneError(
            f"Another command has put the profile back on {device} just now, or has applied "
            "another one, so nothing is persisted; apply the profile again.",
            document,
        )
    return files


def print_persisted(files: Iterable[Path], device: str) -> None:
    """Say which files were written to keep the values, and how to undo that."""
    for path in files:
        say(f"Written: {path}")
    if files:
        say(
            "udev sets these values again whenever the array is assembled, as at each boot. To "
            f"undo that: `autotune restore {device}` and `autotune unpersist {device}`."
        )
