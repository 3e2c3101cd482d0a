"""`autotune retune`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Destructive, Json, LogFormat, StateDir
from autotune.cli.terminal import console, notice
from autotune.service import CONFIG
from autotune.suggested import NO_ARRAYS

Option = typer.Option
CTRL_C = "Ctrl-C puts back what is only tried."


def retune(
    devices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DEVICE...", autocompletion=complete.devices, help="Arrays, such as /dev/md0."
        ),
    ] = None,
    all_: Annotated[bool, Option("--all", help="Every array with a profile in force.")] = False,
    log: Annotated[bool, Option("--log", help="Only list earlier passes.")] = False,
    config: Annotated[
        Path, Option(metavar="FILE", help="What may be done to which array, and when.")
    ] = CONFIG,
    destructive: Destructive = None,
    as_json: Json = False,
    log_format: LogFormat = "text",
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Check whether profiles are still right, and tune again where they are not.

    One pass, as the timer starts it. An array that is in use, that syncs, or that is outside its
    window is skipped. Exit code 1 if a pass failed.
    """
    import json

    from autotune.checking.overdue import not_checked
    from autotune.checking.stored import mismatched
    from autotune.errors import UsageError
    from autotune.preflight.checks import require_root
    from autotune.report.live import LiveReporter
    from autotune.report.passes import print_passes
    from autotune.service import history
    from autotune.service.config import load_config
    from autotune.service.one_pass import retune as one_pass
    from autotune.system.array import find_array, list_arrays

    if bool(devices) == all_ and (all_ or not log):
        raise UsageError("Name arrays (/dev/md0), or look at every one (--all).")
    if destructive is not None and (all_ or len(devices or ()) != 1):
        raise UsageError("--destructive is for one array; name it alone.")
    arrays = [find_array(device) for device in devices] if devices else list_arrays()
    out = console()
    if not arrays and not as_json:
        out.print(NO_ARRAYS)
    if log:
        passes = {a.device: history.load(state_dir, a.uuid).passes for a in arrays}
        if as_json:
            documents = {d: [p.model_dump(mode="json") for p in ps] for d, ps in passes.items()}
            print(json.dumps(documents, indent=2))
            return
        for device, records in passes.items():
            print_passes(out, device, records)
        return
    require_root()
    settings = load_config(config)
    _put_back(state_dir)
    for text in not_checked().values() if all_ else ():
        notice(text)
    reports = []
    with LiveReporter(console(stderr=True), CTRL_C) as reporter:
        for array in arrays:
            differs = mismatched(array, state_dir)
            report = one_pass(
                array, settings, state_dir, reporter, destructive=destructive, differs=differs
            )
            reports.append(report)
            if not as_json:
                # The sentence says it, too.
                outcome = "" if report.outcome == "no profile" else f"{report.outcome}. "
                out.print(f"{report.device}: {outcome}{report.text}")
    # First: a folder for metrics that is not there must not take the reports along.
    if as_json:
        print(json.dumps([report.document for report in reports], indent=2))
    if settings.metrics is not None:
        from autotune.service.metrics import write_metrics
        from autotune.service.observe import observe

        write_metrics(
            Path(settings.metrics.textfile), [observe(a, state_dir) for a in list_arrays()]
        )
    if any(report.outcome == "failed" for report in reports):
        raise typer.Exit(1)


def _put_back(state_dir: Path) -> None:
    """Put back what a run that was killed has left. Else each pass would be refused until somebody
    came, and there may be nobody."""
    from autotune.safety.put_back_each import abandoned, put_back_each

    came = put_back_each(abandoned(state_dir), {})
    for text in came.failed:
        notice(text)
    if came.barred:
        from autotune.deploy.udevd import wake

        # Such a journal has kept udev from what is persisted, and that is what is to be measured.
        wake(came.barred, notice)
