"""`autotune forecast`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import STATE_DIR, Device, Json, StateDir, read
from autotune.cli.terminal import console, notice, say
from autotune.service import CONFIG

if TYPE_CHECKING:
    from autotune.system.array import Array


def forecast(
    device: Device,
    finish_within: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Also say which speed a rebuild needs to be done within this time: 24h.",
        ),
    ] = None,
    p99_ceiling: Annotated[
        str | None,
        typer.Option(
            metavar="LIMIT",
            help="End as soon as the p99 is surely above this, such as 50ms. [default: guard_p99, "
            "if configured]",
        ),
    ] = None,
    time: Annotated[
        str, typer.Option(metavar="TIME", help="How long it may take: 3min to 5min.")
    ] = "4min",
    as_json: Json = False,
    config: Annotated[
        Path, typer.Option(metavar="FILE", help="Where `guard_p99` is set.")
    ] = CONFIG,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Forecast how long a check, rebuild or resync takes, and roughly your p99 meanwhile.

    A short check runs at some speeds. It changes no data, but mismatch_cnt is reset; the settings
    are put back. While a sync runs, that one is watched for half a minute instead, and nothing is
    written.

    p99: the time within which 99 of 100 requests are answered.
    """
    import json

    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import parse_limit_ns
    from autotune.quantities import parse_seconds
    from autotune.report import sync_forecast as report
    from autotune.report import sync_forecast_document
    from autotune.report.live import LiveReporter
    from autotune.service.config import load_config
    from autotune.sync_forecast import measuring, stored
    from autotune.system.array import find_array
    from autotune.system.sync import parse_within

    array = find_array(device)
    within_s = None
    if finish_within is not None:
        within_s = read("--finish-within", parse_within, finish_within)
    limit = load_config(config).care(array.uuid).guard_p99 if p99_ceiling is None else p99_ceiling
    option = "--p99-ceiling" if p99_ceiling is not None else "guard_p99"
    ceiling_ns = read(option, parse_limit_ns, limit) if limit is not None else None
    measuring.check_time(seconds := read("--time", parse_seconds, time))
    if _read_running(array, state_dir, as_json, within_s):
        return
    require_root()
    with LiveReporter(console(stderr=True)) as reporter:
        asked = measuring.ForecastOptions(
            state_dir,
            ceiling_ns if ceiling_ns is not None else float("inf"),
            seconds,
            notice,
            reporter.progress,
        )
        made = measuring.forecast(array, asked)
    if aside := stored.keep(made, state_dir):
        notice(f"The earlier forecasts of {device} are damaged; their file is now {aside}.")
    if as_json:
        print(json.dumps(sync_forecast_document.document(made, within_s, ceiling_ns), indent=2))
    else:
        report.print_forecast(console(), made, within_s, ceiling_ns)


def _read_running(
    array: "Array", state_dir: Path, as_json: bool, within_s: float | None = None
) -> bool:
    """Say when the sync that is under way will end; False if none is."""
    import json

    from autotune.errors import AutotuneError
    from autotune.guard import announce
    from autotune.measure.sync_progress import under_way
    from autotune.preflight import syncs
    from autotune.report import running_sync as report
    from autotune.report.live import LiveReporter
    from autotune.sync_forecast import running, stored
    from autotune.system.sync import NAMES, is_delayed

    if not (action := under_way(array)):
        return False
    if is_delayed(array.md):
        raise AutotuneError(
            f"The {NAMES[action]} of {array.device} waits for a sync of another array on the same "
            "disks; ask again once it runs."
        )
    known = stored.newest(array, state_dir)
    with LiveReporter(console(stderr=True)) as reporter:
        watched = running.watch(
            array, action, lambda share: reporter.progress("watching the sync", share, None)
        )
    if watched.over:
        if as_json:
            print(json.dumps(report.ended_document(array.device, watched), indent=2))
        else:
            say(report.ended_line(array.device, watched))
        return True
    curve = announce.curve(array, action, known) if known else None
    found = running.judge(array, watched, curve)
    if found is None:
        still = syncs.held(array.now())
        raise AutotuneError(
            f"The {NAMES[action]} of {array.device} did not move in the last half minute, so its "
            f"end cannot be told. {still or 'Look at /proc/mdstat.'}"
        )
    if as_json:
        print(json.dumps(report.running_document(array.device, found), indent=2))
    else:
        for line in report.running_lines(array.device, found, within_s):
            say(line)
    return True
