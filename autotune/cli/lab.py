"""`autotune lab`: try things on real arrays in a machine without real disks."""

from pathlib import Path
from typing import Annotated

import typer


def lab(
    scenario: Annotated[
        str | None,
        typer.Argument(metavar="SCENARIO", help="A scenario's name, or a path to a .toml file."),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="What to run there; a shell if not given."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder that the command can write to, at the same path.", metavar="DIR"
        ),
    ] = None,
    kernel: Annotated[
        Path | None,
        typer.Option(
            help="Boot this linux.uml, of an unpacked package user-mode-linux.",
            metavar="FILE",
            envvar="AUTOTUNE_LAB_KERNEL",
            show_envvar=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the scenarios.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="With --list: print JSON.")] = False,
) -> None:
    """Boot a kernel with simulated disks and real md arrays, and run a command in it.

    That machine sees all files of this one. What it changes is lost, except in the folder of --out.
    The exit code is that of the command.
    """
    import json

    from autotune.errors import UsageError
    from autotune.lab.lab import run
    from autotune.lab.scenario import load, shipped

    if list_:
        known = shipped()
        lines = [f"{name:<12} {summary}" for name, summary in known.items()]
        print(json.dumps(known, indent=2) if as_json else "\n".join(lines))
        return
    if as_json:
        raise UsageError("--json is for --list; give both, or leave it out.")
    if scenario is None:
        raise UsageError("Name a scenario; `autotune lab --list` shows those that are shipped.")
    if out:
        out.mkdir(parents=True, exist_ok=True)
    raise typer.Exit(run(load(scenario), command or ["bash"], out, kernel))
