"""`autotune check`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Device, Json, LogFormat, StateDir, read
from autotune.cli.terminal import notice, say
from autotune.service import CONFIG

if TYPE_CHECKING:
    from autotune.service.config import Care
    from autotune.system.array import Array


def check(
    device: Device,
    p99_ceiling: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="Limit for the p99 of users' requests, such as 50ms. [default: guard_p99, if "
            "configured]",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.policies,
            help="Without a ceiling, whom to favour: foreground, balanced or rebuild. [default: "
            "foreground]",
        ),
    ] = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Begin at the start, even if an earlier check is unfinished."
        ),
    ] = False,
    scheduled: Annotated[
        bool,
        typer.Option(
            "--scheduled",
            help="As the timer does: only if a check is due (check_every), and only in the window.",
        ),
    ] = False,
    as_json: Json = False,
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Where checks, guard_p99 and metrics are set.")
    ] = CONFIG,
    log_format: LogFormat = "text",
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Check that all members agree, slowly enough for your users, and go on where it stopped.

    Reads the whole array and changes no data. The check is as fast as the guard allows. Ctrl-C
    stops it, and so does a reboot; the next `autotune check` goes on from there. It gives way to a
    recovery or resync, and waits while a disk is too warm. All limits are put back.

    The exit code is 0 also if it was stopped, and if members differ; --json says which.

    Example: autotune check /dev/md0 --p99-ceiling 50ms
    """
    import json
    import math

    from autotune.cli.checking import CheckArguments
    from autotune.cli.checking import check as check_array
    from autotune.errors import UsageError
    from autotune.guard.goals import POLICIES, Goals
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import Ceiling, doubt, parse_limit_ns
    from autotune.report import check as report
    from autotune.service.config import load_config
    from autotune.system.array import find_array

    settings, array = load_config(config), find_array(device)
    care = settings.care(array.uuid)
    if policy is not None and p99_ceiling is not None:
        raise UsageError("--policy stands for the ceiling, so it goes without one.")
    if policy is not None and policy not in POLICIES:
        raise UsageError(f'--policy knows no "{policy}"; choose {" or ".join(POLICIES)}.')
    if scheduled and restart:
        raise UsageError("--scheduled begins a check when it is due, so it goes without --restart.")
    by_config = care.guard_p99 if policy is None else None
    ceiling = p99_ceiling if p99_ceiling is not None else by_config
    option = "--p99-ceiling" if p99_ceiling is not None else "guard_p99"
    ceiling_ns = read(option, parse_limit_ns, ceiling) if ceiling is not None else math.inf
    if p99_ceiling is not None and (odd := doubt(Ceiling(None, ceiling_ns, None))):
        notice(odd)
    require_root()
    if scheduled and (why := _not_due(array, care, state_dir, config)):
        print(json.dumps({"device": array.device, "postponed": why}) if as_json else why)
        return
    goals = Goals(ceiling_ns, policy=None if ceiling else policy or "foreground")
    arguments = CheckArguments(array, settings, goals, state_dir, restart, scheduled)
    record, stopped = check_array(arguments)
    if as_json:
        found = report.document(array.device, record, stopped) if record else None
        document = found or {"device": array.device, "postponed": stopped}
        print(json.dumps(document, indent=2))
    elif record is None:
        say(f"The check of {array.device} has not begun: {stopped}.")
    else:
        say("\n".join(report.sentences(array.device, record, stopped)))


def _not_due(array: "Array", care: "Care", state_dir: Path, config: Path) -> str:
    """Why the timer has nothing to do with this array now, as a sentence; else ""."""
    from datetime import UTC, datetime, timedelta

    from autotune.checking import stored
    from autotune.errors import UsageError

    if care.every_s is None:
        raise UsageError(f"No checks of {array.device} are wanted; set check_every in {config}.")
    history = stored.load(stored.path_of(state_dir, array.uuid))
    whole = history.complete
    if whole is None or history.is_due(care.every_s, datetime.now(UTC)):
        return ""
    due = whole.began + timedelta(seconds=care.every_s)
    return (
        f"The last whole check of {array.device} began on {whole.began.astimezone():%Y-%m-%d}; the "
        f"next one is due on {due.astimezone():%Y-%m-%d}."
    )
