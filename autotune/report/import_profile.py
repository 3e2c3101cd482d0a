"""What a profile comes to on an array, and what became of it, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.deploy.rescale import Plan
from autotune.quantities import show_bytes, show_seconds
from autotune.report.text_table import TextTable
from autotune.stats.sequential import LEAST_PAIRS
from autotune.suggested import in_folder
from autotune.tuning.document import comparison_document
from autotune.tuning.import_profile import Arrival
from autotune.tuning.preparation import BASELINE_TRIALS, Preparation


def print_plan(console: Console, device: str, plan: Plan) -> None:
    """Each knob's value there and here, and why they differ; or why the profile does not fit."""
    if plan.refusals:
        console.print(Text(f"{device}: the profile does not fit."))
        for refusal in plan.refusals:
            console.print(Text(f"  {refusal}"))
        return
    table = TextTable(device, "profile", "here", "", right=[1, 2])
    for change in plan.changes:
        here = "–" if change.here is None else str(change.here)
        table.add_row(Text(change.knob), Text(str(change.there)), Text(here), Text(change.why))
    console.print(table)
    for note in plan.notes:
        console.print(Text(f"note: {note}"))


def print_measuring(console: Console, preparation: Preparation) -> None:
    """What the proof of it would take."""
    seconds = sum(phase.expected_seconds for phase in preparation.phases)
    # And once for nothing, since the first touch of everything is slower.
    trials = 1 + BASELINE_TRIALS + 2 * LEAST_PAIRS
    names = ", ".join(phase.name for phase in preparation.phases)
    console.print(
        f"autotune would measure {names}, {trials} times in about {show_seconds(seconds * trials)}"
        f", within {show_bytes(preparation.ram_budget_bytes)} of RAM, and keep it if it is no "
        "worse. Nothing was changed.",
        highlight=False,
    )


def print_arrival(console: Console, arrival: Arrival) -> None:
    """The verdict, and how to undo it."""
    if not arrival.kept:
        console.print(
            Text(f"Not kept: {arrival.reason.rstrip('.')}. The original settings are back.")
        )
        return
    gain = _gain(arrival)
    undo = in_folder(f"`autotune restore {arrival.device}`")
    console.print(
        Text(
            f"Kept on {arrival.device}{f', {gain}' if gain else ''}: {arrival.reason}. It lasts "
            f"until a reboot; {undo} undoes it."
        ),
    )
    if arrival.path is not None:
        stays = in_folder(f"`autotune apply {arrival.path} {arrival.device} --persist`")
        console.print(Text(f"{stays} keeps it over reboots."))


def print_arrivals(console: Console, arrivals: Sequence[Arrival]) -> None:
    """One line an array."""
    table = TextTable("array", "", "gain (95 %)", "why")
    for each in arrivals:
        kept = "kept" if each.kept else "not kept"
        table.add_row(Text(each.device), kept, _gain(each), Text(each.reason))
    console.print(table)


def _gain(arrival: Arrival) -> str:
    if arrival.done is None or arrival.done.result.verdict is None:
        return ""
    overall = arrival.done.result.verdict.overall
    return f"×{overall.ratio:.2f} ({overall.low:.2f} to {overall.high:.2f})"


def document(arrival: Arrival) -> dict[str, Any]:
    """The same for programs. `here` is null for a knob that is left as it is, `run` and `gain`
    are null if nothing was measured."""
    done = arrival.done
    verdict = done.result.verdict if done else None
    return {
        "device": arrival.device,
        "kept": arrival.kept,
        "reason": arrival.reason,
        **plan_document(arrival.plan),
        "before": dict(arrival.before),
        "run": done.number if done else None,
        "gain": comparison_document(verdict.overall) if verdict else None,
        "profile_path": str(arrival.path) if arrival.path else None,
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    return {
        "plan": [vars(change) for change in plan.changes],
        "refusals": list(plan.refusals),
        "notes": list(plan.notes),
    }
