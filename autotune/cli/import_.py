"""`autotune import`."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Ceilings, Destructive, Json, Scratch, StateDir, read
from autotune.cli.terminal import console, notice
from autotune.suggested import NO_ARRAYS

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from autotune.deploy.catalogue import StartingPoint
    from autotune.deploy.rescale import Plan
    from autotune.problem.profile import Profile
    from autotune.tuning.import_profile import Arrival
    from autotune.tuning.preparation import Options

    Work = Callable[[Options, Plan], Arrival]

Option = typer.Option
CTRL_C = "Ctrl-C puts the original settings back."


def import_(
    profile: Annotated[
        str,
        typer.Argument(
            metavar="PROFILE",
            autocompletion=complete.profiles,
            help="A profile's file, or a name that `autotune profiles` lists.",
        ),
    ],
    device: Annotated[
        str | None,
        Option(
            metavar="DEVICE", autocompletion=complete.devices, help="The array, such as /dev/md0."
        ),
    ] = None,
    all_: Annotated[
        bool, Option("--all", help="Every array that it fits, one after the other.")
    ] = False,
    workload: Annotated[
        str | None,
        Option(
            metavar="NAME|FILE", help="What to measure with. [default: what it was proven with]"
        ),
    ] = None,
    verify: Annotated[
        bool,
        Option(
            "--verify/--no-verify",
            help="Measure it against what is there, in turn. [default: --verify]",
        ),
    ] = True,
    time: Annotated[str, Option(metavar="TIME", help="How long each array may take.")] = "30min",
    p99_ceiling: Ceilings = None,
    ram_budget: Annotated[
        str,
        Option(
            metavar="SIZE", help="RAM that its settings may take here: 256MiB, or 5% of all memory."
        ),
    ] = "5%",
    write_budget: Annotated[
        str | None,
        Option(
            metavar="SIZE",
            help="What may be written to each array in total: 50GiB. [default: no limit]",
        ),
    ] = None,
    scratch: Scratch = None,
    destructive: Destructive = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print what it would set here, and change nothing.")
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Try a profile on an array of this machine: adapt it, measure it, keep it if it is no worse.

    A profile that is kept lasts until a reboot. Exit code 1 if it was kept on no array.

    Example: autotune import hdd-nas --device /dev/md0 --dry-run
    """
    import json

    from autotune.deploy import catalogue
    from autotune.errors import RefusalError, UsageError
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import parse_ceiling
    from autotune.quantities import parse_budget, parse_bytes, parse_seconds
    from autotune.report import import_profile as report
    from autotune.system.array import list_arrays
    from autotune.tuning.import_profile import workload_of
    from autotune.tuning.preparation import Options

    if (not device) != all_:
        raise UsageError("Name one array (--device /dev/md0), or try it on every array (--all).")
    if all_ and (destructive or scratch):
        raise UsageError("--destructive and --scratch are for one array; name it with --device.")
    require_root()
    item = catalogue.find(profile, state_dir)
    asked = Options(
        device=device or "",
        workload=workload_of(item, workload, verify),
        time_s=read("--time", parse_seconds, time),
        ceilings=tuple(read("--p99-ceiling", parse_ceiling, text) for text in p99_ceiling or ()),
        ram_budget=read("--ram-budget", parse_budget, ram_budget),
        write_budget=read("--write-budget", parse_bytes, write_budget)
        if write_budget is not None
        else None,
        scratch=scratch,
        destructive=destructive,
    )
    names = [device] if device else [array.device for array in list_arrays()]
    if not names:
        raise RefusalError(NO_ARRAYS)
    each = [dataclasses.replace(asked, device=name) for name in names]
    out = console()
    out.quiet = as_json
    work = (_dry_run if dry_run else _bring)(out, item, state_dir, verify)
    arrivals = _for_each(out, item, each, state_dir, work)
    if as_json:
        print(json.dumps(_document(item, arrivals), indent=2))
    elif all_ and not dry_run:
        report.print_arrivals(out, arrivals)
    if not any(arrival.kept or (dry_run and not arrival.plan.refusals) for arrival in arrivals):
        raise typer.Exit(1)


def _dry_run(
    out: "Console", item: "Profile | StartingPoint", state_dir: Path, verify: bool
) -> "Work":
    """Print what the run would measure."""
    from autotune.report import import_profile as report
    from autotune.tuning.import_profile import Arrival, given
    from autotune.tuning.prepare import prepare

    def work(options: "Options", plan: "Plan") -> Arrival:
        if verify:
            report.print_measuring(out, prepare(given(item, options, plan), state_dir))
        return Arrival(options.device, plan, False, "a dry run")

    return work


def _bring(
    out: "Console", item: "Profile | StartingPoint", state_dir: Path, verify: bool
) -> "Work":
    """Try the profile, and keep it if it is no worse."""
    from autotune.report import import_profile as report
    from autotune.report.live import LiveReporter
    from autotune.tuning.import_profile import Arrival, bring

    def work(options: "Options", plan: "Plan") -> Arrival:
        with LiveReporter(console(stderr=True), CTRL_C) as reporter:
            arrival = bring(item, options, plan, state_dir, reporter, verify)
        report.print_arrival(out, arrival)
        return arrival

    return work


def _for_each(
    out: "Console",
    item: "Profile | StartingPoint",
    each: "list[Options]",
    state_dir: Path,
    work: "Work",
) -> "list[Arrival]":
    """One after the other. An array on which it comes to nothing does not stop those after it,
    but a signal does."""
    from autotune.deploy.rescale import Plan
    from autotune.errors import AutotuneError, SignalledError
    from autotune.report import import_profile as report
    from autotune.tuning.import_profile import Arrival, planned

    arrivals: list[Arrival] = []
    for options in each:
        plan = Plan((), (), ())
        try:
            plan = planned(item, options, state_dir)
            report.print_plan(out, options.device, plan)
            if plan.refusals:
                arrival = Arrival(options.device, plan, False, " ".join(plan.refusals))
            else:
                arrival = work(options, plan)
        except AutotuneError as error:
            if len(each) == 1:
                raise
            arrival = Arrival(options.device, plan, False, str(error))
            notice(f"{options.device}: {error}")
            if isinstance(error, SignalledError):
                error.document = _document(item, [*arrivals, arrival])
                raise
        arrivals.append(arrival)
    return arrivals


def _document(item: "Profile | StartingPoint", arrivals: "list[Arrival]") -> dict[str, object]:
    from autotune.report import import_profile as report

    return {"profile": item.name, "arrays": [report.document(each) for each in arrivals]}
