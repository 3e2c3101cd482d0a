"""The passes of re-tuning as a table on a terminal."""

from collections.abc import Sequence

from rich.console import Console

from autotune.quantities import show_count, show_seconds
from autotune.report.array_rows import ratio_and_span
from autotune.report.text_table import TextTable
from autotune.service.history import PassRecord


def print_passes(console: Console, device: str, records: Sequence[PassRecord]) -> None:
    """One line a pass, the newest first. `records` have the newest last."""
    newest = ", the newest first" if len(records) > 1 else ""
    console.print(f"{device}: {show_count(len(records), 'pass', 'passes')}{newest}")
    if not records:
        return
    heads = ("date", "outcome", "against originals", "new against old profile", "trials", "time")
    table = TextTable(*heads, right=[4], whole=[0, 2, 3, 5])
    for record in reversed(records):
        table.add_row(
            record.at.astimezone().strftime("%Y-%m-%d"),
            record.outcome,
            *(
                ratio_and_span(list(each) if each else None).replace(" to ", "–")
                for each in (record.gain, record.better)
            ),
            str(record.trials),
            show_seconds(record.seconds),
        )
    console.print(table)
