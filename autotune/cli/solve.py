"""`autotune solve`."""

from pathlib import Path
from typing import Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir, in_a_folder, read
from autotune.cli.terminal import console


def solve(
    run: Annotated[
        int,
        typer.Argument(
            metavar="RUN",
            autocompletion=complete.runs,
            max=2**31,
            help="The run's number; `autotune history` lists them.",
        ),
    ],
    p99_ceiling: Annotated[
        list[str] | None,
        typer.Option(
            metavar="LIMIT",
            help="Limits in place of the run's: 20ms, 1.5x, or PHASE=20ms; repeatable.",
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="Which answer: throughput, balanced or latency.")
    ] = "balanced",
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", callback=in_a_folder, help="Write a profile to this file."),
    ] = None,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Find another answer in the stored trials of a run, without touching the array.

    throughput: the greatest gain under the ceilings given, with no other limit. balanced: what the
    run decided, or the greatest gain under all ceilings. latency: the lowest p99 of what is no
    slower than the original settings. A gain counts by its lower end.
    """
    import json

    from autotune.errors import RefusalError, UsageError
    from autotune.knobs.profile_file import save_profile
    from autotune.problem.ceilings import parse_ceiling
    from autotune.report import solution as report
    from autotune.report.history import as_it_is
    from autotune.results.solve import solve as find
    from autotune.results.stored_run import understood
    from autotune.store.database import Store

    asked = [read("--p99-ceiling", parse_ceiling, text) for text in p99_ceiling or ()]
    store = Store.existing(state_dir)
    if store is None:
        raise UsageError(f"There is no run {run}; nothing has been run with {state_dir} yet.")
    with understood(f"run {run}"):
        solution = find(as_it_is(store.run(run)), store.trials(run), asked, name)
    if save and solution.profile is not None:
        save_profile(solution.profile, save, named=True)
    saved = save if solution.profile is not None else None
    unsaved = save is not None and solution.profile is None
    with understood(f"run {run}"):
        document = report.document(solution, saved)
        if not as_json:
            report.print_solution(console(), solution, saved)
        elif not unsaved:
            print(json.dumps(document, indent=2))
    if unsaved:
        raise RefusalError(
            f"No profile was saved to {save}: the answer is the original settings, "
            "which need none; ask for another with --name or --p99-ceiling.",
            document,
        )
