"""Options and messages that several commands share."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from autotune import suggested
from autotune.cli.terminal import LOG_FORMAT, LOG_FORMATS, notice, say
from autotune.errors import AutotuneError, UsageError

if TYPE_CHECKING:
    from autotune.problem.profile import Profile

StateDir = Annotated[
    Path,
    typer.Option(
        metavar="DIR",
        envvar="AUTOTUNE_STATE_DIR",
        callback=suggested.name_folder,
        help="Folder of runs, journals and profiles.",
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
        help="What is said on standard error: text, or json (an object a line).",
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


def persist_applied(
    profile: "Profile", device: str, state_dir: Path, document: Mapping[str, object]
) -> tuple[Path, ...]:
    """Persist a profile that has just been applied; return the files. Raise AutotuneError, with the
    document of what was done, if that fails: the profile stays in force then."""
    from autotune.deploy.persist import persist
    from autotune.safety.applied import is_applied
    from autotune.safety.locks import lock
    from autotune.system.array import find_array

    try:
        array = find_array(device)
        with lock(array):
            if is_applied(array, state_dir):
                return persist(profile, array, state_dir, notice)
    except AutotuneError as error:
        raise AutotuneError(
            f"The profile is applied to {device} until the next reboot, but it is not persisted: "
            f"{error}",
            document,
        ) from None
    raise AutotuneError(
        f"The values of before were put back on {device} by another command just now, so nothing "
        "is persisted; apply the profile again.",
        document,
    )


def print_persisted(files: Iterable[Path], device: str) -> None:
    """Say which files were written to keep the values, and how to undo that."""
    for path in files:
        say(f"Written: {path}")
    if files:
        say(f"It comes back at each assembly, until `autotune unpersist {device}`.")
