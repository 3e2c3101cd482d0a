"""What a run would do: the dry run."""

import shlex
from typing import Any

from rich.console import Console

from autotune.measure.fio import Target, command
from autotune.measure.phase import fio_jobs
from autotune.quantities import show_bytes, show_seconds
from autotune.safety.scratch_folder import SCRATCH_PREFIX
from autotune.system.scratch_space import scratch_bytes
from autotune.tuning.prepare import Preparation


def _writes(preparation: Preparation) -> Target | None:
    if preparation.options.destructive is not None:
        return preparation.reads
    if preparation.scratch is None:
        return None
    folder = preparation.scratch / f"{SCRATCH_PREFIX}XXXXXXXXXXXXXXXX"
    return Target(folder / "scratch", scratch_bytes(preparation.scratch, preparation.ground))


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
        "notes": [finding.message for finding in preparation.findings],
    }


def print_plan(console: Console, preparation: Preparation) -> None:
    """The plan for people."""
    plan = plan_document(preparation)
    options = preparation.options
    temper = "carefully" if preparation.careful else "eagerly"
    console.print(
        f"autotune would tune {plan['device']} with up to {options.trials} settings "
        f"({options.strategy}, {temper}), in {show_seconds(options.time_s)} at most, and change "
        "nothing that it does not put back.\n"
    )
    console.print("[bold]Settings that it would try[/] (files that it would write to)")
    for name, knob in plan["knobs"].items():
        choices = knob["choices"]
        shown = (
            f"{choices[0]} … {choices[-1]}, {len(choices)} values"
            if len(choices) > 6
            else ", ".join(str(choice) for choice in choices)
        )
        console.print(f"  {name}: now {knob['now']}; {shown}", highlight=False)
        for path in knob["files"]:
            console.print(f"    {path}", style="dim", highlight=False)
    console.print(f"  RAM budget: {show_bytes(plan['ram_budget_bytes'])}")
    if plan["ceilings"]:
        console.print(f"  ceilings of p99: {', '.join(plan['ceilings'])}")
    console.print()
    console.print(f"[bold]Phases that it would measure[/] (workload {options.workload.name})")
    if options.workload.description:
        console.print(f"  {options.workload.description}", highlight=False, markup=False)
    for name, phase in plan["phases"].items():
        sync = "the sync that is under way" if preparation.live else "a check of the array"
        check = f", beside {sync}" if phase["check"] else ""
        console.print(f"  {name} (weight {phase['weight']:g}{check})", highlight=False)
        console.print(f"    {shlex.join(phase['fio'])}", style="dim")
    if plan["left_out"]:
        left_out = ", ".join(plan["left_out"])
        console.print(f"  not measured, since {preparation.why_left_out}: {left_out}")
    if plan["scratch"]:
        size = show_bytes(plan["scratch_bytes"])
        console.print(f"\nWrites go only to {plan['scratch']} ({size}).")
    elif options.destructive:
        console.print(f"\n[bold red]Writes go to {plan['device']} itself: its data is lost.[/]")
    else:
        console.print("\nNothing is written to the array.")
    if options.write_budget is not None:
        filling = show_bytes(plan["scratch_bytes"] if plan["scratch"] else 0)
        console.print(
            f"Write budget: {show_bytes(options.write_budget)}, of which {filling} to fill the "
            "scratch file.",
        )
    for note in plan["notes"]:
        console.print(f"note: {note}")
