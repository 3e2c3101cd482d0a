"""`autotune run`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.options import STATE_DIR, Json, Persist, StateDir, print_persisted
from autotune.cli.terminal import console, notice

if TYPE_CHECKING:
    from autotune.tuning.prepare import Options

Option = typer.Option


def run(
    device: Annotated[str, typer.Argument(help="The array, such as /dev/md0.")],
    workload: Annotated[
        str,
        Option(
            help="What the array is used for: balanced, quick, streaming, database, nas, rebuild, "
            "a TOML file, or a fio job file (*.fio)."
        ),
    ] = "balanced",
    strategy: Annotated[
        str, Option(help="What proposes settings: bayes, recipe, random, grid, …")
    ] = "bayes",
    trials: Annotated[int, Option(min=1, max=1000, help="How many settings to try at most.")] = 20,
    time: Annotated[str, Option(help="How long the whole run may take, such as 2h.")] = "30min",
    p99_ceiling: Annotated[
        list[str] | None,
        Option(
            help="Limit for the p99: 20ms, 1.5x (of the idle array's), or PHASE=20ms; repeatable."
        ),
    ] = None,
    ram_budget: Annotated[
        str, Option(help="RAM that the settings may take: 256MiB, or 5% of all memory.")
    ] = "5%",
    knobs: Annotated[
        str, Option(help="What to tune: default, all, or names separated by commas.")
    ] = "default",
    write_budget: Annotated[
        str | None, Option(help="What the run may write in total: 50GiB. [default: no limit]")
    ] = None,
    scratch: Annotated[
        Path | None, Option(help="Folder for the scratch file, on a filesystem on the array.")
    ] = None,
    seed: Annotated[int, Option(min=0, help="Fixes the random choices.")] = 0,
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
    destructive: Annotated[
        str | None,
        Option(metavar="DEVICE", help="Write to the raw array (name it again): its data is lost."),
    ] = None,
    apply: Annotated[
        bool, Option("--apply", help="Keep the winner's settings until the next reboot.")
    ] = False,
    persist: Persist = False,
    resume: Annotated[
        bool, Option("--resume", help="Resume the last interrupted run (give the same options).")
    ] = False,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the whole plan, and change nothing.")
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Tune an array: measure it, search, prove the winner, save a profile.

    The original settings come back at the end, unless --apply is given and the winner is proven.
    """
    from autotune.errors import UsageError
    from autotune.knobs import parse_knobs
    from autotune.measure.workload import load_workload
    from autotune.problem.ceilings import parse_ceiling
    from autotune.quantities import parse_bytes, parse_seconds, parse_share
    from autotune.tuning.prepare import Options

    options = Options(
        device=device,
        workload=load_workload(workload),
        strategy=strategy,
        trials=trials,
        time_s=parse_seconds(time),
        ceilings=tuple(parse_ceiling(text) for text in p99_ceiling or ()),
        ram_budget=parse_share(ram_budget) or parse_bytes(ram_budget),
        scratch=scratch,
        destructive=destructive,
        careful=careful if careful or eager else None,
        seed=seed,
        knobs=parse_knobs(knobs),
        write_budget=parse_bytes(write_budget) if write_budget is not None else None,
    )
    if careful and eager:
        raise UsageError("--careful and --eager exclude each other; leave one out.")
    if dry_run and resume:
        raise UsageError("--dry-run shows a new run, so it goes without --resume; leave one out.")
    if persist and not apply:
        raise UsageError("--persist keeps what --apply has applied; give both.")
    if dry_run:
        _dry_run(options, as_json)
    else:
        _run(options, state_dir, apply, persist, resume, as_json)


def _dry_run(options: "Options", as_json: bool) -> None:
    import json

    from autotune.report.plan import plan_document, print_plan
    from autotune.tuning.prepare import prepare
    from autotune.tuning.run import find_strategy

    find_strategy(options.strategy)
    preparation = prepare(options)
    if as_json:
        print(json.dumps(plan_document(preparation), indent=2))
    else:
        print_plan(console(), preparation)


def _run(
    options: "Options", state_dir: Path, apply: bool, persist: bool, resume: bool, as_json: bool
) -> None:
    import json

    from autotune.deploy.persist import check
    from autotune.deploy.persist import persist as stay
    from autotune.report import named_answers
    from autotune.report import result as report
    from autotune.report.live import LiveReporter
    from autotune.system.array import find_array
    from autotune.tuning.run import run as tune_array

    if persist:
        check(find_array(options.device), state_dir)
    with LiveReporter(console(stderr=True)) as reporter:
        done = tune_array(options, state_dir, reporter, apply, resume)
    files: tuple[Path, ...] = ()
    if persist and done.profile is not None:
        files = stay(done.profile, find_array(options.device), state_dir, notice)
    if as_json:
        document = done.profile.model_dump(mode="json") if done.profile else None
        result = report.as_json(done.result, document, done.path)
        document = {**result, "run": done.number, "named": named_answers.document(done.named)}
        document["spent"] = report.spent_document(done.spent)
        document["persisted"] = [str(path) for path in files]
        print(json.dumps(document, indent=2))
        return
    out = console()
    report.print_result(out, done.result, done.path, done.ram_bytes)
    report.print_spent(out, done.spent)
    if done.left_out:
        out.print(f"Not measured, since {done.why_left_out}: {', '.join(done.left_out)}.")
    named_answers.print_named(out, done.named, done.result.baseline, done.number)
    if done.path and not apply:
        out.print(
            f"The original settings are back; `autotune apply {done.path} {options.device}` "
            "applies the profile.",
        )
    print_persisted(files, options.device)
