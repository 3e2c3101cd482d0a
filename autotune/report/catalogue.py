"""The catalogue, for people and for programs."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.deploy.catalogue import Entry, StartingPoint
from autotune.report.text_table import TextTable
from autotune.untrusted import plain


def print_entries(console: Console, entries: Sequence[Entry], whole: bool) -> None:
    """A table of all; with `whole`, everything that is known of each."""
    if whole:
        for entry in entries:
            _print_whole(console, entry)
        return
    table = TextTable("name", "from", "for", "proven", "sets")
    for entry in entries:
        sets = ", ".join(f"{knob} {value}" for knob, value in _values(entry).items())
        table.add_row(
            Text(plain(entry.name)), entry.kind, Text(_class(entry)), _proven(entry), Text(sets)
        )
    console.print(table)


def _print_whole(console: Console, entry: Entry) -> None:
    def line(text: str) -> None:
        console.print(Text(text))

    line(f"{plain(entry.name)} ({entry.kind}, {plain(entry.path)})")
    line(f"  for {_class(entry)}; workload {entry.item.workload}; proven: {_proven(entry)}")
    if isinstance(entry.item, StartingPoint):
        line(f"  {entry.item.summary}")
        for knob, published in entry.item.knobs.items():
            line(f"  {knob} {published.value}")
            line(f"    {published.says}".rstrip())
            line(f"    {published.source}")
        return
    for knob, value in entry.item.knobs.items():
        line(f"  {knob} {value} (before: {entry.item.before.get(knob, '?')})")


def _values(entry: Entry) -> dict[str, int | str]:
    item = entry.item
    return dict(item.values if isinstance(item, StartingPoint) else item.knobs)


def _class(entry: Entry) -> str:
    item = entry.item
    if isinstance(item, StartingPoint):
        return f"{', '.join(item.levels)} on {', '.join(item.media)}"
    proven = item.proven_on
    return f"{proven.level} of {proven.members} on {proven.media}"


def _proven(entry: Entry) -> str:
    if isinstance(entry.item, StartingPoint):
        return "no"
    evidence = entry.item.evidence
    return f"×{evidence.gain:.2f}" if evidence.confirmed else "no"


def document(entry: Entry) -> dict[str, Any]:
    """The same for programs: `kind` is "shipped", "site", "own" or "file"; `proven` whether it was
    measured in turn and found better; `starting_point` or `profile` is the whole of it."""
    whole = entry.item.model_dump(mode="json")
    starting = isinstance(entry.item, StartingPoint)
    return {
        "name": entry.name,
        "kind": entry.kind,
        "path": entry.path,
        "for": _class(entry),
        "sets": _values(entry),
        "proven": not isinstance(entry.item, StartingPoint) and entry.item.evidence.confirmed,
        "starting_point" if starting else "profile": whole,
    }
