"""What could be better about an array, for people and for programs."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.advice.finding import Advice, Finding
from autotune.quantities import show_count
from autotune.report.lines import print_indented
from autotune.untrusted import harmless

LIVE = "Safe while the array is in use."
NOT_LIVE = "Not while the array is in use."
"""Of what an earlier version has kept."""


def print_advice(console: Console, advice: Advice) -> None:
    """Each finding with all that is known of it, then what could not be looked at."""
    number = show_count(len(advice.findings), "finding") if advice.findings else "no findings"
    console.print(Text.assemble((advice.device, "bold"), f": {number}."))
    for finding in advice.findings:
        console.print()
        _print(console, finding)
    if advice.not_looked_at:
        console.print("\nNot looked at:")
        for each in advice.not_looked_at:
            print_indented(console, f"{each.name}: {each.reason}.")
    if advice.silenced:
        names = ", ".join(dict.fromkeys(finding.name for finding in advice.silenced))
        console.print(Text(f"\nFound, but silenced in the configuration: {names}."))


def _print(console: Console, finding: Finding) -> None:
    console.print(Text(finding.name, style="bold"))
    print_indented(console, finding.seen)
    print_indented(console, f"{finding.cost} ({finding.source})")
    for command in commands(finding):
        # Whole, so that it can be copied.
        console.print(Text(f"    {harmless(command)}"), soft_wrap=True)
    if said := advised(asdict(finding)):
        print_indented(console, said)


def commands(finding: Finding) -> list[str]:
    """As they are printed: who copies all of them runs none unread that does harm."""
    mark = "" if finding.live else "# "
    return [mark + command.replace("\n", f"\n{mark}") for command in finding.commands]


def advised(finding: Mapping[str, Any]) -> str:
    """What is to be said beside what was seen and what mends it, from its document."""
    safe = LIVE if finding["live"] else NOT_LIVE
    if finding["risk"]:
        safe = f"Commented out: {finding['risk']}"
    return f"{safe if finding['commands'] else ''} {finding['note']}".strip()


def advice_line(advice: Advice) -> str:
    """The short form, for `doctor`; "" if there is nothing to say."""
    if not advice.findings:
        return ""
    number = show_count(len(advice.findings), "finding")
    return f"advise: {number}; `autotune advise {advice.device}` says more, and reads the disks."


def advice_document(advice: Advice) -> dict[str, Any]:
    """The same for programs."""
    return {
        "device": advice.device,
        "findings": [_document(finding) for finding in advice.findings],
        "silenced": [_document(finding) for finding in advice.silenced],
        "not_looked_at": {each.name: each.reason for each in advice.not_looked_at},
    }


def _document(finding: Finding) -> dict[str, Any]:
    return {**asdict(finding), "commands": commands(finding)}
