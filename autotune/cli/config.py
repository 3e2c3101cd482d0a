"""`autotune config`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.options import Json
from autotune.cli.plain_help import PlainCommand
from autotune.service import CONFIG

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from autotune.system.array import Array

config = typer.Typer(no_args_is_help=True, help="The configuration of what the units do.")


@config.callback()
def _group() -> None:
    """The configuration of what the units do by themselves."""


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
    here = list_arrays()
    arrays = {a.device: settings.care(a.uuid).model_dump(mode="json") for a in here}
    unknown = sorted(set(settings.arrays) - {a.uuid for a in here})
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
        print(f"There is no configuration {name}; the defaults apply.")
    elif not faults:
        print(f"{name} can be used.")
    for fault in faults:
        print(fault)
    for array in here:
        if not array.redundant:
            print(f"{array.device}: nothing, since it has no redundancy.")
            continue
        for text in _what_follows(array, arrays[array.device]):
            print(f"{array.device}: {text}")
    for uuid in unknown:
        print(f"No array with the UUID {uuid} is running on this machine.")
    raise typer.Exit(int(bool(faults)))


def _what_follows(array: "Array", care: "Mapping[str, Any]") -> "Iterator[str]":
    """What the units do to an array, a sentence each."""
    from autotune.service.install import no_sync
    from autotune.system.temperature import temperatures

    does = "keeps what is better" if care["adopt"] else "only says what is better"
    when = f"between {care['window']}" if care["window"] else "at any quiet time"
    yield (
        f"once a profile is in force, re-tuning {does}. It runs {when}, with the workload "
        f"{care['workload']}; each of its runs, four at the most, takes {care['time']} or less."
    )
    if (care["check_every"] or care["guard_p99"]) and (why := no_sync(array)):
        yield f"no check and no guard, since {why}."
        return
    if every := care["check_every"]:
        yield f"it is checked every {every}, {care['window'] or 'at any time'}."
        if not temperatures(array.leaves, array.root):
            yield (
                "no disk of it tells how warm it is, so check_temperature does nothing; "
                "for SATA and SAS disks, `sudo modprobe drivetemp` may change that."
            )
    if ceiling := care["guard_p99"]:
        longest = care["guard_finish_within"] or "7d"
        yield (
            f"while it syncs, a guard slows that down to keep the p99 of its users below {ceiling}."
        )
        yield (
            f"a rebuild that is slowed down is to be over within {longest} all the same; if the "
            "slowest one breaks the ceiling, too, it runs at full speed."
        )
