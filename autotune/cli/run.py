"""`autotune run`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli import complete
from autotune.cli.options import (
    STATE_DIR,
    Ceilings,
    Destructive,
    Json,
    LogFormat,
    Scratch,
    StateDir,
    read,
)
from autotune.cli.terminal import notice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from autotune.tuning.preparation import Options

Option = typer.Option


def run(
    devices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DEVICE...",
            autocompletion=complete.devices,
            help="The array, such as /dev/md0; several: one after the other.",
        ),
    ] = None,
    all_: Annotated[
        bool, Option("--all", help="Every array with redundancy, one after the other.")
    ] = False,
    workload: Annotated[
        str,
        Option(
            metavar="NAME|FILE",
            autocompletion=complete.workloads,
            help="What the array is used for: balanced, quick, streaming, database, nas, rebuild, "
            "a TOML file, or a fio job file (*.fio).",
        ),
    ] = "balanced",
    strategy: Annotated[
        str, Option(metavar="NAME", help="What proposes settings: bayes, recipe, random, grid, …")
    ] = "bayes",
    trials: Annotated[
        int,
        Option(
            metavar="N",
            min=1,
            max=1000,
            help="How many new combinations to try at most. The original settings and the proof "
            "are some trials more.",
        ),
    ] = 20,
    time: Annotated[
        str, Option(metavar="TIME", help="How long the whole run may take: 15min, 2h, 1h30min.")
    ] = "30min",
    p99_ceiling: Ceilings = None,
    ram_budget: Annotated[
        str,
        Option(metavar="SIZE", help="RAM that the settings may take: 256MiB, or 5% of all memory."),
    ] = "5%",
    knobs: Annotated[
        str,
        Option(
            metavar="NAMES",
            autocompletion=complete.knobs,
            help="What to tune: default, all, or names separated by commas.",
        ),
    ] = "default",
    write_budget: Annotated[
        str | None,
        Option(metavar="SIZE", help="What the run may write in total: 50GiB. [default: no limit]"),
    ] = None,
    scratch: Scratch = None,
    seed: Annotated[int, Option(metavar="N", min=0, help="Fixes the random choices.")] = 0,
    careful: Annotated[
        bool,
        Option(
            "--careful",
            help="Try only combinations likely to meet the ceilings. "
            "[default if the array is in use]",
        ),
    ] = False,
    eager: Annotated[
        bool, Option("--eager", help="Try any combination. [default if the array is not in use]")
    ] = False,
    destructive: Destructive = None,
    apply: Annotated[
        bool, Option("--apply", help="Leave the winner in force until the array is stopped.")
    ] = False,
    persist: Annotated[
        bool,
        Option(
            "--persist",
            help="With --apply: have udev set the values again at each boot and assembly.",
        ),
    ] = False,
    resume: Annotated[
        bool, Option("--resume", help="Resume the last interrupted run (give the same options).")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the whole plan, and change nothing.")
    ] = False,
    verbose: Annotated[
        bool, Option("--verbose", help="With --dry-run: also the files and the fio command lines.")
    ] = False,
    as_json: Json = False,
    log_format: LogFormat = "text",
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Tune an array: measure it, search, prove the winner, save a profile.

    The original settings come back at the end, unless --apply is given and the winner is proven.
    Of several arrays, one that fails does not stop the others; the exit code is then 1, and
    --json prints a list.

    p99: the time within which 99 of 100 requests are answered.

    Example: autotune run /dev/md0 --time 15min --p99-ceiling 50ms
    """
    import dataclasses

    from autotune.errors import UsageError
    from autotune.knobs import parse_knobs
    from autotune.measure.workload import load_workload
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import parse_ceiling
    from autotune.quantities import parse_budget, parse_bytes, parse_seconds
    from autotune.tuning.preparation import Options

    options = Options(
        device="",
        workload=load_workload(workload),
        strategy=strategy,
        trials=trials,
        time_s=read("--time", parse_seconds, time),
        ceilings=tuple(read("--p99-ceiling", parse_ceiling, text) for text in p99_ceiling or ()),
        ram_budget=read("--ram-budget", parse_budget, ram_budget),
        scratch=scratch,
        destructive=destructive,
        careful=careful if careful or eager else None,
        seed=seed,
        knobs=parse_knobs(knobs),
        write_budget=read("--write-budget", parse_bytes, write_budget)
        if write_budget is not None
        else None,
    )
    if careful and eager:
        raise UsageError("--careful and --eager exclude each other; leave one out.")
    if dry_run and resume:
        raise UsageError("--dry-run shows a new run, so it goes without --resume; leave one out.")
    if verbose and not dry_run:
        raise UsageError("--verbose is for --dry-run; give both.")
    if persist and not apply:
        raise UsageError("--persist keeps what --apply has applied; give both.")
    if (all_ or len(devices or ()) > 1) and (destructive or scratch or resume):
        raise UsageError(
            "--destructive, --scratch and --resume are for one array; name that one alone."
        )
    each = [dataclasses.replace(options, device=name) for name in _arrays(devices, all_)]
    require_root()
    from autotune.cli import running

    def one(options: Options) -> dict[str, Any]:
        if dry_run:
            return running.dry_run(options, state_dir, as_json, verbose)
        return running.run(options, state_dir, apply, persist, resume, as_json)

    _for_each(each, all_ or len(each) > 1, as_json, one)


def _arrays(devices: "Sequence[str] | None", all_: bool) -> list[str]:
    """Which arrays are meant, each once. Raise UsageError if that is not said."""
    from autotune.errors import RefusalError, UsageError
    from autotune.system.array import find_array, list_arrays

    here = [array.device for array in list_arrays() if array.redundant]
    if bool(devices) == all_:
        if all_:
            raise UsageError("Name arrays or give --all, not both.")
        if not here:
            raise UsageError(
                "No md array with redundancy runs on this machine, so nothing can be tuned; see "
                "/proc/mdstat."
            )
        raise UsageError(
            f"Name the array to tune: this machine has {', '.join(here)}. "
            f"`autotune doctor {here[0]}` says whether a run can start, "
            f"`autotune run {here[0]}` starts one, and --all tunes one after the other."
        )
    if all_ and not here:
        raise RefusalError("This machine has no md array with redundancy that could be tuned.")
    return here if all_ else list(dict.fromkeys(find_array(d).device for d in devices or ()))


def _for_each(
    each: "Sequence[Options]",
    several: bool,
    as_json: bool,
    work: "Callable[[Options], dict[str, Any]]",
) -> None:
    """One after the other, never two at once. An array that fails does not stop those after it,
    but a signal does."""
    import json

    from autotune.errors import AutotuneError, SignalledError

    if not several:
        document = work(each[0])
        if as_json:
            print(json.dumps(document, indent=2))
        return
    documents, failed = [], []
    for number, options in enumerate(each, 1):
        notice(f"{options.device} ({number} of {len(each)})")
        try:
            documents.append({"device": options.device, **work(options)})
        except AutotuneError as error:
            notice(str(error))
            failed.append(options.device)
            documents.append({"device": options.device, "error": str(error)})
            if isinstance(error, SignalledError):
                break
    if as_json:
        print(json.dumps(documents, indent=2))
    elif failed:
        notice(f"It failed on {', '.join(failed)}; see above.")
    if failed:
        raise typer.Exit(1)
