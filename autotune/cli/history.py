"""`autotune history`."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import console

if TYPE_CHECKING:
    from pathlib import Path

    from autotune.store import RunRecord


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
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """List the runs, the trials of one, or the forecasts."""
    import json

    from autotune.report import history as report
    from autotune.store.database import Store

    if forecasts:
        _forecasts(run, as_json, state_dir)
        return
    store = Store.existing(state_dir)
    if run is None:
        runs = [as_it_is(each) for each in store.runs()] if store else []
        if as_json:
            print(json.dumps(report.runs_document(runs), indent=2))
        else:
            report.print_runs(console(), runs)
        return
    if store is None:
        from autotune.errors import UsageError

        raise UsageError(f"There is no run {run}; nothing has been run with {state_dir} yet.")
    record, trials = as_it_is(store.run(run)), store.trials(run)
    if as_json:
        print(json.dumps(report.run_document(record, trials), indent=2))
    else:
        report.print_run(console(), record, trials)


def _forecasts(run: int | None, as_json: bool, state_dir: "Path") -> None:
    import json

    from autotune.errors import UsageError
    from autotune.report import sync_forecast, sync_forecast_document
    from autotune.sync_forecast import stored

    if run is not None:
        raise UsageError("A run has no forecasts; give its number or --forecasts.")
    found = stored.every(state_dir)
    if as_json:
        print(json.dumps([sync_forecast_document.document(each) for each in found], indent=2))
    else:
        sync_forecast.print_list(console(), found)


def as_it_is(run: "RunRecord") -> "RunRecord":
    """A run that was killed could not store that it was."""
    from autotune.safety.locks import is_held

    if run.state == "running" and not is_held(run.uuid):
        return dataclasses.replace(run, state="interrupted", outcome="Killed.")
    return run
