"""`autotune lab`: try things on real arrays in a machine that cannot be harmed."""

from pathlib import Path
from typing import Annotated

import typer


def _list(wanted: bool) -> None:
    if not wanted:
        return
    from autotune.lab.scenario import shipped

    for name, summary in shipped().items():
        typer.echo(f"{name:<12} {summary}")
    raise typer.Exit


def lab(
    scenario: Annotated[str, typer.Argument(help="A scenario's name, or a path to a .toml file.")],
    command: Annotated[
        list[str] | None, typer.Argument(help="What to run there; a shell if not given.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder that the command can write to, at the same path.", metavar="DIR"
        ),
    ] = None,
    list_: Annotated[
        bool, typer.Option("--list", callback=_list, is_eager=True, help="List the scenarios.")
    ] = False,
) -> None:
    """Boot a kernel with simulated disks and real md arrays, and run a command in it.

    The machine sees all files of this one; what it changes vanishes with it, except below --out.
    """
    from autotune.lab.lab import run
    from autotune.lab.scenario import load

    if out:
        out.mkdir(parents=True, exist_ok=True)
    raise typer.Exit(run(load(scenario), command or ["bash"], out))
