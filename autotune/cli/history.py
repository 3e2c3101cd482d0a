"""`autotune history`."""

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir
from autotune.cli.terminal import console

if TYPE_CHECKING:
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
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """List the runs, or the trials of one."""
    import json

    from autotune.report import history as report
    from autotune.store.database import Store

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


def as_it_is(run: "RunRecord") -> "RunRecord":
    """A run that was killed could not store that it was."""
    from autotune.safety.locks import is_held

    if run.state == "running" and not is_held(run.uuid):
        return dataclasses.replace(run, state="interrupted", outcome="Killed.")
    return run
