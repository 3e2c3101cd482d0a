"""`autotune history`."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import console, notice

if TYPE_CHECKING:
    from pathlib import Path


def history(
    run: Annotated[
        int | None,
        typer.Argument(
            metavar="RUN",
            autocompletion=complete.runs,
            max=2**31,
            help="A run's number: lists its trials.",
        ),
    ] = None,
    forecasts: Annotated[
        bool, typer.Option("--forecasts", help="List the forecasts instead.")
    ] = False,
    checks: Annotated[bool, typer.Option("--checks", help="List the checks instead.")] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """List the runs, the trials of one, the forecasts, or the checks."""
    import json

    from autotune.errors import UsageError
    from autotune.report import history as report
    from autotune.results.stored_run import understood
    from autotune.store.database import Store

    if sum((run is not None, forecasts, checks)) > 1:
        raise UsageError("Give one of these: the number of a run, --forecasts, --checks.")
    if checks:
        _checks(as_json, state_dir)
        return
    if forecasts:
        _forecasts(as_json, state_dir)
        return
    store = Store.existing(state_dir)
    if not state_dir.exists() and state_dir != STATE_DIR:
        notice(f"There is no folder {state_dir}.")
    if run is None:
        with understood("the runs"):
            runs = [report.as_it_is(each) for each in store.runs()] if store else []
            if as_json:
                print(json.dumps(report.runs_document(runs), indent=2))
            else:
                report.print_runs(console(), runs)
        return
    if store is None:
        raise UsageError(f"There is no run {run}; nothing has been run with {state_dir} yet.")
    with understood(f"run {run}"):
        record, trials = report.as_it_is(store.run(run)), store.trials(run)
        if as_json:
            print(json.dumps(report.run_document(record, trials), indent=2))
        else:
            report.print_run(console(), record, trials)


def _checks(as_json: bool, state_dir: "Path") -> None:
    import json

    from autotune.checking import stored
    from autotune.report import check as report

    found = list(stored.by_uuid(state_dir).values())
    if as_json:
        print(json.dumps(report.history_document(found), indent=2))
    else:
        report.print_history(console(), found)


def _forecasts(as_json: bool, state_dir: "Path") -> None:
    import json

    from autotune.report import sync_forecast, sync_forecast_document
    from autotune.sync_forecast import stored

    found = stored.every(state_dir)
    if as_json:
        print(json.dumps([sync_forecast_document.document(each) for each in found], indent=2))
    else:
        sync_forecast.print_list(console(), found)
