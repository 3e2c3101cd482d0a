"""`autotune guard`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, StateDir
from autotune.cli.terminal import notice
from autotune.service import CONFIG


def guard(
    device: Annotated[
        str,
        typer.Argument(
            metavar="DEVICE", autocompletion=complete.devices, help="The array, such as /dev/md0."
        ),
    ],
    p99_ceiling: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="Limit for the p99 of users' requests, such as 50ms. [default: as configured]",
        ),
    ] = None,
    least: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Speed of each member below which the sync is never slowed, such as 10MB/s.",
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for a sync, guard it, and wait for the next.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON every 5 s and one at the end.")
    ] = False,
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Where `guard_p99` and metrics are set.")
    ] = CONFIG,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Keep your users' p99 under a ceiling while a rebuild, resync or check runs.

    The sync runs as fast as that allows, and at full speed while nobody uses the array. All
    settings are put back at the end. If even the slowest sync breaks the ceiling, that is reported
    after some minutes. A sync that gives the array its redundancy back then runs at full speed.
    """
    from autotune.cli.guarding import Asked, become
    from autotune.errors import UsageError
    from autotune.guard.valve import FLOOR_KIB
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import Ceiling, doubt, parse_limit_ns
    from autotune.quantities import parse_rate
    from autotune.service.config import load_config
    from autotune.system.array import find_array

    settings, array = load_config(config), find_array(device)
    care, hook = settings.care(array.uuid), settings.notify
    ceiling = p99_ceiling or care.guard_p99
    if ceiling is None:
        raise UsageError(
            f"Name the ceiling to hold (--p99-ceiling 50ms), or set guard_p99 in {config}."
        )
    ceiling_ns = parse_limit_ns(ceiling)
    if odd := doubt(Ceiling(None, ceiling_ns, None)):
        notice(odd)
    require_root()
    asked = Asked(
        device=device,
        ceiling_ns=ceiling_ns,
        least_bytes=parse_rate(least) if least is not None else care.least or FLOOR_KIB * 1024,
        wait=wait,
        as_json=as_json,
        state_dir=str(state_dir),
        textfile=settings.metrics.textfile if settings.metrics else None,
        command=hook.command if hook and "unheld" in hook.on else (),
    )
    become(asked)
