"""Each array beside its profile, for people and for monitoring."""

from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.deploy.status import ArrayStatus
from autotune.report.lines import print_indented
from autotune.report.text_table import TextTable
from autotune.suggested import in_folder


def print_status(console: Console, status: ArrayStatus) -> None:
    """What is in force, the knobs that it sets, and whatever is not as it should be."""
    device, active = status.array.device, status.active
    if active is None:
        console.print(Text(f"{device}: no profile is in force."))
    else:
        console.print(
            Text(f'{device}: the profile "{active.profile.name}" is {active.how}, {until(status)}.')
        )
        console.print(_knobs(status))
    for knob in status.knobs:
        for text in knob.by:
            print_indented(console, f"{knob.knob}: {text}")
    for text in status.misfits:
        print_indented(console, f"another class of array: {text}")
    for text in status.faults:
        print_indented(console, f"wrong: {text}")
    for text in status.notes:
        print_indented(console, f"note: {text}")


def until(status: ArrayStatus) -> str:
    """For how long the profile in force is there."""
    active, kept = status.active, status.persisted
    if active is not None and active.how == "applied":
        same = kept is not None and kept.knobs == active.profile.knobs
        return "and persisted" if same else "until a reboot"
    return "set again at each boot"


def _knobs(status: ArrayStatus) -> TextTable:
    table = TextTable("", "profile", "now", "", right=[1, 2])
    for knob in status.knobs:
        reads = "–" if knob.value is None else str(knob.value)
        differs = "" if knob.same else "differs"
        table.add_row(knob.knob, Text(str(knob.wanted)), Text(reads), Text(differs, style="red"))
    return table


def document(status: ArrayStatus) -> dict[str, Any]:
    """The same for monitoring.

    `ok`: all is as it should be (also where no profile is in force). `profile`: the name of the
    one in force, or null; `how` it is ("applied" until a reboot, or "persisted"), from the file
    `path`; `persisted`: one is applied at each start, be it this one or another. `knobs`, by
    name: what the profile wants, what it reads (null: the array has no such knob), whether these
    are the same, and who may have changed it. `misfits`: why the array is not of the class any
    more that the profile was proven on. `faults`: what else is wrong, as a journal that was left.
    `notes` are no fault.
    """
    active = status.active
    return {
        "device": status.array.device,
        "uuid": status.array.uuid,
        "ok": status.good,
        "profile": active.profile.name if active else None,
        "how": active.how if active else None,
        "path": str(active.path) if active else None,
        "persisted": status.persisted is not None,
        "knobs": {
            knob.knob: {
                "wanted": knob.wanted,
                "value": knob.value,
                "same": knob.same,
                "by": list(knob.by),
            }
            for knob in status.knobs
        },
        "misfits": list(status.misfits),
        "faults": [in_folder(text) for text in status.faults],
        "notes": [in_folder(text) for text in status.notes],
    }
