"""`autotune config`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli.options import Json

config = typer.Typer(no_args_is_help=True, help="The configuration of the service.")


@config.callback()
def _group() -> None:
    """The configuration of the service."""


@config.command()
def check(
    file: Annotated[Path, typer.Argument(help="The configuration.")] = Path(
        "/etc/autotune/config.toml"
    ),
    as_json: Json = False,
) -> None:
    """Say whether the configuration can be used, and what follows for each array here."""
    import json

    from autotune.array import list_arrays
    from autotune.errors import UsageError
    from autotune.service.config import load_config

    if not file.exists():
        raise UsageError(f"There is no configuration {file}; without one, defaults hold.")
    settings = load_config(file)
    arrays = {a.device: settings.care(a.uuid).model_dump(mode="json") for a in list_arrays()}
    unknown = sorted(set(settings.arrays) - {a.uuid for a in list_arrays()})
    if as_json:
        print(json.dumps({"arrays": arrays, "not_here": unknown}, indent=2))
        return
    print(f"{file} can be used.")
    for device, care in arrays.items():
        does = "adopts" if care["adopt"] else "advises"
        when = f"between {care['window']}" if care["window"] else "at any quiet time"
        print(f"{device}: {does}, {when}, workload {care['workload']}, {care['time']} at most.")
    for uuid in unknown:
        print(f"No array with the UUID {uuid} is running here.")
