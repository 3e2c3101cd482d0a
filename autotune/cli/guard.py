"""`autotune guard`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import STATE_DIR, StateDir
from autotune.cli.terminal import console, notice
from autotune.service import CONFIG

if TYPE_CHECKING:
    from collections.abc import Callable

    from autotune.guard.aside import Aside
    from autotune.guard.loop import Window
    from autotune.guard.metrics import MetricsFile
    from autotune.guard.session import Summary
    from autotune.report.live import LiveReporter


def guard(
    device: Annotated[str, typer.Argument(metavar="DEVICE", help="The array, such as /dev/md0.")],
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
    import json
    import threading

    from autotune.errors import UsageError
    from autotune.guard.aside import Aside
    from autotune.guard.metrics import MetricsFile
    from autotune.guard.session import Wanted
    from autotune.guard.session import guard as guard_array
    from autotune.guard.valve import FLOOR_KIB
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import Ceiling, doubt, parse_limit_ns
    from autotune.quantities import parse_rate
    from autotune.report.live import LiveReporter
    from autotune.service.config import load_config
    from autotune.service.notify import notify
    from autotune.system.array import find_array

    settings, array = load_config(config), find_array(device)
    care = settings.care(array.uuid)
    ceiling = p99_ceiling or care.guard_p99
    if ceiling is None:
        raise UsageError(
            f"Name the ceiling to hold (--p99-ceiling 50ms), or set guard_p99 in {config}."
        )
    ceiling_ns = parse_limit_ns(ceiling)
    if odd := doubt(Ceiling(None, ceiling_ns, None)):
        notice(odd)
    least_bytes = parse_rate(least) if least is not None else care.least or FLOOR_KIB * 1024

    def run_hook(text: str) -> None:
        if fault := notify("unheld", array.device, array.uuid, text, settings.notify):
            notice(fault)

    def say(text: str) -> None:
        aside(lambda: notice(text))

    def unheld(text: str) -> None:
        say(text)
        # The valve has to be moved meanwhile.
        threading.Thread(target=run_hook, args=(text,)).start()

    require_root()
    metrics = MetricsFile(settings.metrics, array, ceiling_ns, notice)
    with LiveReporter(console(stderr=True)) as reporter:
        aside = Aside()

        on_window, finished = _callbacks(aside, metrics, reporter, ceiling_ns, as_json)
        try:
            found = guard_array(
                device,
                Wanted(ceiling_ns, state_dir, on_window, finished, say, unheld, least_bytes / 1024),
                wait,
            )
        finally:
            try:
                aside.close()
            finally:
                metrics.over()
    if found:
        return
    text = f"No sync runs on {device}, so there is nothing to guard (--wait waits for one)."
    print(json.dumps({"kind": "idle", "device": device}) if as_json else text)


def _callbacks(
    aside: "Aside",
    metrics: "MetricsFile",
    reporter: "LiveReporter",
    ceiling_ns: float,
    as_json: bool,
) -> "tuple[Callable[[Window], None], Callable[[Summary], None]]":
    """What reports each window, and each sync that is over."""
    import json

    from autotune.guard.aside import write_line
    from autotune.report import guard as report

    def report_window(window: "Window") -> None:
        metrics.window(window)
        if as_json:
            write_line(json.dumps(report.window_document(window)))
        reporter.progress(report.window_line(window, ceiling_ns), window.share, None)

    def report_end(summary: "Summary") -> None:
        metrics.over(summary.released)
        if as_json:
            write_line(json.dumps(report.summary_document(summary)))
        else:
            write_line(report.summary_line(summary, ceiling_ns))

    return (
        lambda window: aside(lambda: report_window(window)),
        lambda summary: aside(lambda: report_end(summary)),
    )
