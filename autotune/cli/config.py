"""`autotune config`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import Json
from autotune.cli.plain_help import PlainCommand
from autotune.service import CONFIG

config = typer.Typer(no_args_is_help=True, help="The configuration of what the units do.")


@config.callback()
def _group() -> None:
    """The configuration of re-tuning and guards."""


@config.command(cls=PlainCommand)
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration.")] = CONFIG,
    as_json: Json = False,
) -> None:
    """Check the configuration, and say what it means for each array.

    Exit code 1 if its command for events or its folder for metrics is missing.
    """
    import json
    import os

    from autotune.errors import UsageError
    from autotune.service.config import load_config
    from autotune.system import ownership
    from autotune.system.array import list_arrays
    from autotune.untrusted import plain

    name = plain(str(file))
    if not file.exists() and file != CONFIG:
        raise UsageError(f"There is no file {name}; name the configuration to check.")
    settings = load_config(file)
    arrays = {a.device: settings.care(a.uuid).model_dump(mode="json") for a in list_arrays()}
    unknown = sorted(set(settings.arrays) - {a.uuid for a in list_arrays()})
    hook = settings.notify.command[0] if settings.notify else None
    faults = []
    if hook is not None and not (Path(hook).is_file() and os.access(hook, os.X_OK)):
        faults.append(f"The command for events, {plain(hook)}, is not there or cannot be run.")
    if settings.notify and (found := ownership.refuse_words(settings.notify.command)):
        faults.append(f"The command for events would not be run: {found}")
    folder = Path(settings.metrics.textfile).parent if settings.metrics else None
    if folder is not None and not folder.is_dir():
        faults.append(f"The folder for metrics, {plain(str(folder))}, is not there.")
    if as_json:
        print(json.dumps({"arrays": arrays, "not_here": unknown, "faults": faults}, indent=2))
        raise typer.Exit(int(bool(faults)))
    if not file.exists():
        print(f"There is no configuration {name}; defaults hold.")
    elif not faults:
        print(f"{name} can be used.")
    for fault in faults:
        print(fault)
    for device, care in arrays.items():
        does = "keeps what is better" if care["adopt"] else "only says what is better"
        when = f"between {care['window']}" if care["window"] else "at any quiet time"
        print(
            f"{device}: re-tuning {does}. It runs {when}, with the workload {care['workload']}, "
            f"for {care['time']} at most."
        )
        if every := care["check_every"]:
            print(f"{device}: it is checked every {every}, {care['window'] or 'at any time'}.")
    for uuid in unknown:
        print(f"No array with the UUID {uuid} is running on this machine.")
    raise typer.Exit(int(bool(faults)))
