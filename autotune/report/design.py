"""What a design found, for people."""

import math
import string

from rich.console import Console

from autotune.design.design import Result
from autotune.design.proof import Finalist
from autotune.design.rebuild import rebuild_s
from autotune.problem.figure import Estimate, Figure
from autotune.quantities import show_bytes, show_count, show_latency, show_rate, show_seconds
from autotune.report.grid import Grid
from autotune.report.tables import QUIET_QUANTITIES, show_change
from autotune.stats.sequential import Held


def print_design(console: Console, result: Result) -> None:
    """The finalists side by side, the answer, and the commands that make it."""
    console.print(_finalists(result))
    console.print()
    console.print(_figures(result))
    console.print()
    _print_answer(console, result)
    _print_rebuild(console, result)
    console.print(f"The search ended: {result.stopped}.")
    plot = result.plot
    console.print(
        f"{show_count(len(result.records), 'trial')} in {show_seconds(result.seconds)}, on the "
        f"{show_bytes(plot.slice_bytes)} behind the beginning of each disk; "
        f"{show_bytes(result.bytes_written)} written. What was made for it is removed."
    )
    _print_orders(console, result)


def _finalists(result: Result) -> Grid:
    table = Grid(
        "", "shape", "capacity", "may fail", "overall (95 %)", right=[2, 3], whole=[0, 2, 3]
    )
    count = len(result.plot.disks)
    for letter, each in zip(string.ascii_uppercase, result.proof.finalists, strict=False):
        capacity = show_bytes(each.shape.capacity_bytes(count, result.plot.each_bytes))
        gain = show_change(each.gain) if each.gain else "mdadm's default"
        style = "bold" if each is result.winner else ""
        survives = show_count(each.shape.survives(count), "disk")
        table.add_row(letter, str(each.shape), capacity, survives, gain, style=style)
    return table


def _figures(result: Result) -> Grid:
    finalists = result.proof.finalists
    letters = string.ascii_uppercase[: len(finalists)]
    table = Grid("", *letters, right=range(1, len(letters) + 1), whole=range(len(letters) + 1))
    for figure in result.figures:
        if figure.name.endswith(QUIET_QUANTITIES):
            continue
        cells = [_cell(figure, each.figures.get(figure.name)) for each in finalists]
        broken = [each.held.get(figure.name) is Held.BROKEN for each in finalists]
        table.add_row(
            figure.name,
            *(f"[red]{c}, over[/]" if b else c for c, b in zip(cells, broken, strict=True)),
        )
    return table


def _cell(figure: Figure, estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    show = show_rate if figure.kind == "throughput" else show_latency
    # Even on both sides, on a log scale.
    percent = (math.sqrt(estimate.interval[1] / estimate.interval[0]) - 1) * 100
    return f"{show(estimate.value)} ±{percent:.0f}%"


def _print_answer(console: Console, result: Result) -> None:
    winner = result.winner
    if winner.gain is None:
        reasons = "; ".join(f"{each.shape}: {each.reason}" for each in _others(result))
        console.print(f"[bold]Take mdadm's default[/], {winner.shape}: nothing was proven better.")
        if reasons:
            console.print(f"  {reasons}.")
        return
    console.print(f"[bold]Take {winner.shape}[/]: {winner.reason}.")
    levels = {each.shape.level for each in result.proof.finalists}
    if len(levels) > 1:
        console.print(
            "Capacity and the disks that may fail are for you to weigh: --level designs for one "
            "level alone."
        )


def _others(result: Result) -> tuple[Finalist, ...]:
    return tuple(each for each in result.proof.finalists if each.gain is not None)


def _print_rebuild(console: Console, result: Result) -> None:
    seconds = rebuild_s(
        result.winner.shape, result.winner.figures, result.workload.phases, result.plot
    )
    later = f"`autotune forecast {result.device}` tells it with its interval, once there is one."
    if seconds is None:
        console.print(f"How long a rebuild takes: {later}")
    else:
        console.print(
            f"A rebuild of a disk: about {show_seconds(seconds)}, at the speed of the check here; "
            f"{later}"
        )


def _print_orders(console: Console, result: Result) -> None:
    orders = result.orders
    for title, lines in (
        ("Make it:", (orders.mdadm,)),
        ("With ext4, and its line in /etc/fstab:", (orders.ext4, orders.ext4_fstab)),
        ("Or with XFS:", (orders.xfs, orders.xfs_fstab)),
    ):
        console.print(title)
        for line in lines:
            console.print(f"  {line}", soft_wrap=True, highlight=False, markup=False)


def print_made(console: Console, result: Result) -> None:
    """What comes after the array was made."""
    console.print(
        f"{result.device} is made, and its first sync runs (`autotune guard {result.device}` keeps "
        "it from disturbing). Then, with a filesystem on it:",
    )
    console.print(f"  {next_command(result)}", soft_wrap=True, highlight=False)


def next_command(result: Result) -> str:
    """What to go on with once the array is made."""
    return f"autotune run {result.device} --workload {result.workload.name}"
