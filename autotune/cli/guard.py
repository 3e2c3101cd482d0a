"""`autotune guard`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import STATE_DIR, StateDir
from autotune.cli.terminal import console, notice
from autotune.service import CONFIG

if TYPE_CHECKING:
    from autotune.guard.loop import Window
    from autotune.guard.session import Summary


def guard(
    device: Annotated[str, typer.Argument(help="The array, such as /dev/md0.")],
    p99_ceiling: Annotated[
        str | None,
        typer.Option(help="Limit of foreground p99, such as 50ms. [default: the configuration's]"),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for a sync, guard it, wait for the next.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON every 5 s and one at the end.")
    ] = False,
    config: Annotated[Path, typer.Option(help="Where `guard_p99` and metrics are set.")] = CONFIG,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Hold the foreground's p99 under a ceiling while a rebuild, resync or check runs.

    The sync goes as fast as that allows, at full speed without a foreground. Everything is put
    back at its end.
    """
    import json

    from autotune.errors import UsageError
    from autotune.guard.metrics import Told
    from autotune.guard.session import guard as guard_array
    from autotune.quantities import parse_latency_ns
    from autotune.report import guard as report
    from autotune.report.live import LiveReporter
    from autotune.service.config import load_config
    from autotune.system.array import find_array

    settings, array = load_config(config), find_array(device)
    ceiling = p99_ceiling or settings.care(array.uuid).guard_p99
    if ceiling is None:
        raise UsageError(
            f"Name the ceiling to hold (--p99-ceiling 50ms), or set guard_p99 in {config}."
        )
    ceiling_ns = parse_latency_ns(ceiling)

    told = Told(settings.metrics, array, ceiling_ns, notice)
    with LiveReporter(console(stderr=True)) as reporter:

        def hear(window: "Window") -> None:
            told.window(window)
            if as_json:
                print(json.dumps(report.window_document(window)), flush=True)
            reporter.progress(report.window_line(window, ceiling_ns), window.share, None)

        def finished(summary: "Summary") -> None:
            told.over()
            if as_json:
                print(json.dumps(report.summary_document(summary)), flush=True)
            else:
                print(report.summary_line(summary, ceiling_ns), flush=True)

        try:
            found = guard_array(device, ceiling_ns, state_dir, hear, finished, notice, wait)
        finally:
            told.over()
    if found:
        return
    text = f"No sync runs on {device}, so there is nothing to guard (--wait waits for one)."
    print(json.dumps({"kind": "idle", "device": device}) if as_json else text)
