"""What a run would do: the dry run."""

import shlex
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.measure.fio_command import Target, command
from autotune.measure.phase import fio_jobs
from autotune.problem.ceilings import doubt
from autotune.quantities import show_bytes, show_count
from autotune.report.lines import print_indented
from autotune.report.run_cost import (
    careful_line,
    cost_document,
    notice_lines,
    time_line,
    write_lines,
)
from autotune.safety.scratch_folder import SCRATCH_PREFIX
from autotune.system.scratch_space import scratch_bytes
from autotune.tuning.preparation import Preparation
from autotune.tuning.run_cost import run_cost


def _writes(preparation: Preparation) -> Target | None:
    if preparation.options.destructive is not None:
        return preparation.reads
    if preparation.scratch is None:
        return None
    folder = preparation.scratch / f"{SCRATCH_PREFIX}XXXXXXXXXXXXXXXX"
    return Target(folder / "scratch", scratch_bytes(preparation.scratch, preparation.underlying))


def plan_document(preparation: Preparation) -> dict[str, Any]:
    """The whole plan: phases with their fio commands, knobs with their files and values."""
    array, target = preparation.array, _writes(preparation)
    phases = {
        phase.name: {
            "weight": phase.weight,
            "check": phase.check,
            "fio": list(
                command(
                    fio_jobs(phase, preparation.reads, target),
                    phase.max_seconds,
                    preparation.options.seed,
                )
            ),
        }
        for phase in preparation.phases
    }
    knobs = {
        knob.name: {
            "now": preparation.baseline[knob.name],
            "choices": list(preparation.choices[knob.name]),
            "files": [str(path) for path in knob.paths(array)],
        }
        for knob in preparation.knobs
    }
    return {
        "device": array.device,
        "workload": preparation.options.workload.name,
        "strategy": preparation.options.strategy,
        "uuid": array.uuid,
        "phases": phases,
        "left_out": [phase.name for phase in preparation.left_out],
        "scratch": str(target.path) if target and not preparation.options.destructive else None,
        "scratch_bytes": target.size_bytes if target else 0,
        "knobs": knobs,
        "trials": preparation.options.trials,
        "time_s": preparation.options.time_s,
        "ceilings": [str(ceiling) for ceiling in preparation.options.ceilings],
        "ram_budget_bytes": preparation.ram_budget_bytes,
        "write_budget_bytes": preparation.options.write_budget,
        "careful": preparation.careful,
        "expected": cost_document(run_cost(preparation)),
        "not_measured": preparation.not_measured,
        "notes": [
            *filter(None, [preparation.left_alone]),
            *(finding.message for finding in preparation.findings),
            *filter(None, map(doubt, preparation.options.ceilings)),
        ],
    }


def print_plan(console: Console, preparation: Preparation, verbose: bool = False) -> None:
    """The plan for people; with `verbose`, the files and fio command lines too."""
    plan, expected = plan_document(preparation), run_cost(preparation)
    options = preparation.options
    tried = show_count(options.trials, "combination")
    console.print(
        f"A run would try up to {tried} of settings on {plan['device']} "
        f"(strategy {options.strategy}), and put back everything that it changes. This dry run "
        "has changed nothing.\n"
    )
    console.print("What it takes", style="bold")
    for line in (time_line(expected), careful_line(preparation)):
        print_indented(console, line)
    for line in write_lines(preparation, expected):
        print_indented(console, line, style="bold red" if line.endswith("is lost.") else "")
    console.print("\nWhat users of the array will notice", style="bold")
    for line in notice_lines(preparation, expected):
        print_indented(console, line)
    console.print()
    console.print("Settings that it would try", style="bold")
    for name, knob in plan["knobs"].items():
        choices = knob["choices"]
        shown = (
            f"{choices[0]} … {choices[-1]}, {len(choices)} values"
            if len(choices) > 6
            else ", ".join(str(choice) for choice in choices)
        )
        print_indented(console, f"{name}: now {knob['now']}; {shown}")
        for path in knob["files"] if verbose else ():
            console.print(f"    {path}", style="dim", highlight=False, soft_wrap=True)
    console.print(f"  RAM budget: {show_bytes(plan['ram_budget_bytes'])}")
    if plan["ceilings"]:
        console.print(f"  ceilings of p99: {', '.join(plan['ceilings'])}")
    console.print()
    heading = ("Phases that it would measure", "bold")
    console.print(Text.assemble(heading, f" (workload {options.workload.name})"))
    if options.workload.description:
        print_indented(console, options.workload.description)
    for name, phase in plan["phases"].items():
        sync = "the sync that is under way" if preparation.live else "a check of the array"
        check = f", beside {sync}" if phase["check"] else ""
        print_indented(console, f"{name} (weight {phase['weight']:g}{check})")
        if verbose:
            console.print(f"    {shlex.join(phase['fio'])}", style="dim", soft_wrap=True)
    if not verbose:
        print_indented(console, "(--verbose adds the files in /sys and the fio command lines)")
    if options.write_budget is not None:
        filling = show_bytes(plan["scratch_bytes"] if plan["scratch"] else 0)
        console.print(
            f"Write budget: {show_bytes(options.write_budget)}, of which {filling} to fill the "
            "scratch file.",
        )
    for note in plan["notes"]:
        console.print(f"note: {note}")
