"""`autotune guard`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Device, LogFormat, StateDir, read
from autotune.cli.terminal import notice
from autotune.service import CONFIG


def guard(
    device: Device,
    p99_ceiling: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="Limit for the p99 of users' requests, such as 50ms. [default: guard_p99, if "
            "configured]",
        ),
    ] = None,
    finish_within: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="How soon the sync has to be over, such as 24h. [default: for a rebuild or resync "
            "under a ceiling, guard_finish_within, if configured, else 7d]",
        ),
    ] = None,
    finish_by: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help='The deadline as a time of day or a date: 06:00, "Mon 06:00", "2026-12-24 06:00".',
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.policies,
            help="Instead of numbers, whom to favour: foreground, balanced or rebuild.",
        ),
    ] = None,
    if_impossible: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            autocompletion=complete.promises,
            help="What to keep if deadline and ceiling exclude each other: deadline or ceiling. "
            "[default: the deadline, of a check the ceiling]",
        ),
    ] = None,
    least: Annotated[
        str | None,
        typer.Option(
            metavar="RATE",
            help="Speed of each member below which the sync is never slowed, such as 10MB/s. "
            "[default: guard_least, if configured, else 1000 KiB/s]",
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
    log_format: LogFormat = "text",
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Keep your users' p99 under a ceiling while a sync runs, and meet a deadline.

    A sync is a rebuild, resync or check; a reshape is not guarded. It runs as fast as the ceiling
    allows, at full speed while nobody uses the array, and fast enough for the deadline
    (--if-impossible says which one is kept if both cannot be). All settings are put back at the
    end. If even the slowest sync breaks the ceiling, that is reported after some minutes. A sync
    that gives the array its redundancy back then runs at full speed, unless a deadline says how
    fast it has to be.

    p99: the time within which 99 of 100 requests are answered.

    Example: autotune guard /dev/md0 --p99-ceiling 200ms --finish-within 24h
    """
    import math
    from datetime import datetime

    from autotune.cli.guarding import GuardArguments, become
    from autotune.errors import UsageError
    from autotune.guard.goals import CEILING, DEADLINE, POLICIES, parse_moment
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import Ceiling, doubt, parse_limit_ns
    from autotune.quantities import parse_rate
    from autotune.service.config import load_config
    from autotune.system.array import find_array
    from autotune.system.sync import FLOOR_KIB, parse_within

    settings, array = load_config(config), find_array(device)
    care, hook = settings.care(array.uuid), settings.notify
    by_config = care.guard_p99 if policy is None else None
    ceiling = p99_ceiling if p99_ceiling is not None else by_config
    by_deadline = finish_within is not None or finish_by is not None
    if ceiling is None and policy is None and not by_deadline:
        raise UsageError(
            "Name what to keep: a ceiling (--p99-ceiling 50ms), a deadline (--finish-within 24h) "
            f"or a --policy; or set guard_p99 in {config}."
        )
    if finish_within is not None and finish_by is not None:
        raise UsageError("--finish-within and --finish-by say the same; give one of them.")
    if policy is not None and (ceiling is not None or by_deadline):
        raise UsageError(
            "--policy stands for the numbers, so it goes without a ceiling or deadline."
        )
    for option, value, names in (
        ("--policy", policy, POLICIES),
        ("--if-impossible", if_impossible, (DEADLINE, CEILING)),
    ):
        if value is not None and value not in names:
            raise UsageError(f'{option} knows no "{value}"; choose {" or ".join(names)}.')
    has_deadline = by_deadline or care.finish_s is not None
    if if_impossible is not None and not (has_deadline and ceiling is not None):
        raise UsageError("--if-impossible is for a deadline and a ceiling; give both.")
    if finish_by is not None:
        now = datetime.now()
        read("--finish-by", lambda text: parse_moment(text, now), finish_by)
    option = "--p99-ceiling" if p99_ceiling is not None else "guard_p99"
    ceiling_ns = read(option, parse_limit_ns, ceiling) if ceiling is not None else math.inf
    if ceiling is not None and (odd := doubt(Ceiling(None, ceiling_ns, None))):
        notice(odd)
    require_root()
    asked = GuardArguments(
        device=device,
        ceiling_ns=ceiling_ns,
        within_s=read("--finish-within", parse_within, finish_within)
        if finish_within is not None
        else None,
        by=finish_by,
        policy=policy,
        first=if_impossible or "",
        rebuild_s=care.finish_s,
        least_bytes=read("--least", parse_rate, least)
        if least is not None
        else care.least or FLOOR_KIB * 1024,
        wait=wait,
        as_json=as_json,
        state_dir=str(state_dir),
        textfile=settings.metrics.textfile if settings.metrics else None,
        command=hook.command if hook and "unheld" in hook.on else (),
    )
    become(asked)
