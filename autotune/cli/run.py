"""`autotune run`."""

import os
import shlex
from pathlib import Path
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
    persist_applied,
    print_persisted,
    read,
)
from autotune.cli.terminal import console, notice
from autotune.suggested import in_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from autotune.tuning.preparation import Options
    from autotune.tuning.run import Done

Option = typer.Option
CTRL_C = "Ctrl-C undoes all; --resume goes on."


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
            help="How many new settings to try at most. The original settings and the proof are "
            "some trials more.",
        ),
    ] = 20,
    time: Annotated[
        str, Option(metavar="TIME", help="How long the whole run may take, such as 2h.")
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
            help="Try only settings likely to meet the ceilings. [default if the array is in use]",
        ),
    ] = False,
    eager: Annotated[
        bool, Option("--eager", help="Try any setting. [default if the array is not in use]")
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
    several = all_ or len(each) > 1
    if dry_run:
        _for_each(each, several, as_json, lambda one: _dry_run(one, state_dir, as_json, verbose))
    else:
        _for_each(
            each,
            several,
            as_json,
            lambda one: _run(one, state_dir, apply, persist, resume, as_json),
        )


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


def _dry_run(options: "Options", state_dir: Path, as_json: bool, verbose: bool) -> dict[str, Any]:
    from autotune.report.plan import plan_document, print_plan
    from autotune.tuning.prepare import prepare
    from autotune.tuning.strategies import find_strategy

    find_strategy(options.strategy)
    preparation = prepare(options, state_dir)
    if not as_json:
        print_plan(console(), preparation, verbose)
    return plan_document(preparation)


def _run(
    options: "Options", state_dir: Path, apply: bool, persist: bool, resume: bool, as_json: bool
) -> dict[str, Any]:
    from autotune.deploy.persist import check
    from autotune.report.live import LiveReporter
    from autotune.system.array import find_array
    from autotune.tuning.run import run as tune_array

    if persist:
        check(find_array(options.device), state_dir)
    with LiveReporter(console(stderr=True), CTRL_C) as reporter:
        done = tune_array(options, state_dir, reporter, apply, resume)
    if not as_json:
        _print(done, options.device, apply, state_dir)
    files: tuple[Path, ...] = ()
    if persist and done.profile is not None:
        files = persist_applied(done.profile.knobs, options.device, state_dir, _document(done, ()))
    if not as_json:
        print_persisted(files, options.device)
    return _document(done, files)


def _document(done: "Done", files: "Sequence[Path]") -> dict[str, Any]:
    from autotune.report import named_answers
    from autotune.tuning.document import result_document, spent_document

    profile = done.profile.model_dump(mode="json") if done.profile else None
    return {
        **result_document(done.result, profile, done.path),
        "run": done.number,
        "left_out": list(done.left_out),
        "named": named_answers.document(done.named),
        "spent": spent_document(done.spent),
        "persisted": [str(path) for path in files],
    }


def _print(done: "Done", device: str, apply: bool, state_dir: Path) -> None:
    from autotune.quantities import show_ram
    from autotune.report import named_answers
    from autotune.report import result as report

    out = console()
    ram = show_ram(done.ram_bytes, done.original_ram_bytes)
    report.print_result(out, done.result, done.path, ram)
    report.print_spent(out, done.spent)
    if done.not_measured:
        out.print(done.not_measured)
    named_answers.print_named(out, done.named, done.result.baseline, done.number)
    if done.path and not apply:
        use = in_folder(f"`autotune apply {shlex.quote(str(done.path))} {shlex.quote(device)}`")
        out.print(f"The original settings are back; {use} applies the profile.")
    if "AUTOTUNE_LAB" in os.environ:
        out.print("These commands are for inside the lab, whose arrays are new at each start.")
