"""What a design found, for people."""

import math
import shlex
import string

from rich.console import Console

from autotune.design.design import Result
from autotune.design.proof import Finalist
from autotune.design.rebuild import rebuild_s
from autotune.design.shape import Shape
from autotune.problem.figure import Estimate, Figure
from autotune.problem.setting import Setting
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
    console.print(f"The search ended: {result.stopped}.")
    plot = result.plot
    console.print(
        f"{show_count(len(result.records), 'trial')} in {show_seconds(result.seconds)}, on "
        f"{show_bytes(plot.slice_bytes)} of each disk; {show_bytes(result.bytes_written)} "
        "written. All small arrays are removed."
    )
    _print_rebuild(console, result)
    console.print()
    _print_orders(console, result)


def _finalists(result: Result) -> Grid:
    table = Grid(
        "", "shape", "capacity", "may fail", "overall (95 %)", right=[2, 3], whole=[0, 2, 3]
    )
    count = len(result.plot.disks)
    for letter, each in _lettered(result):
        capacity = show_bytes(each.shape.capacity_bytes(count, result.plot.each_bytes))
        gain = show_change(each.gain) if each.gain else "mdadm's default"
        style = "bold" if each is result.winner else ""
        survives = show_count(each.shape.survives(count), "disk")
        table.add_row(letter, str(each.shape), capacity, survives, gain, style=style)
    return table


def _figures(result: Result) -> Grid:
    finalists = result.proof.finalists
    letters = [letter for letter, _ in _lettered(result)]
    table = Grid("", *letters, right=range(1, len(letters) + 1), whole=[0])
    for figure in result.figures:
        if figure.name.endswith(QUIET_QUANTITIES):
            continue
        cells = [_cell(figure, each.figures.get(figure.name)) for each in finalists]
        broken = [each.held.get(figure.name) is Held.BROKEN for each in finalists]
        table.add_row(
            figure.name,
            *(f"[red]{c}, over[/]" if b else c for c, b in zip(cells, broken, strict=True)),
        )
    times = [_rebuild_s(result, each) for each in finalists]
    if any(times):
        table.add_row("a rebuild", *("–" if t is None else show_seconds(t) for t in times))
    return table


def _lettered(result: Result) -> list[tuple[str, Finalist]]:
    """Each finalist with the letter that it has in the tables."""
    return list(zip(string.ascii_uppercase, result.proof.finalists, strict=False))


def _rebuild_s(result: Result, each: Finalist) -> float | None:
    return rebuild_s(each.figures, result.workload.phases, result.plot)


def _cell(figure: Figure, estimate: Estimate | None) -> str:
    if estimate is None:
        return "–"
    show = show_rate if figure.kind == "throughput" else show_latency
    # Even on both sides, on a log scale.
    percent = (math.sqrt(estimate.interval[1] / estimate.interval[0]) - 1) * 100
    return f"{show(estimate.value)} ±{percent:.0f}%"


def _print_answer(console: Console, result: Result) -> None:
    winner = result.winner
    letter = next(letter for letter, each in _lettered(result) if each is winner)
    if winner.gain is None:
        console.print(
            f"[bold]Take {letter}, {winner.shape}[/]: nothing was proven better than mdadm's "
            "default."
        )
    else:
        console.print(f"[bold]Take {letter}, {winner.shape}[/]: {winner.reason}.")
    for letter, each in _lettered(result):
        if each.gain is not None and not each.kept:
            console.print(f"  Not {letter}: {each.reason}.")
    if winner.gain is None:
        console.print("With more time (--time), smaller differences can be proven.")
    levels = {each.shape.level for each in result.proof.finalists}
    if len(levels) > 1:
        console.print(
            "Capacity and the disks that may fail are for you to weigh. To have another level, "
            f"run it again with --level, such as --level {_another_level(result)}."
        )


def _another_level(result: Result) -> str:
    levels = [each.shape.level for each in result.proof.finalists]
    return next(level for level in levels if level != result.winner.shape.level)


def _print_rebuild(console: Console, result: Result) -> None:
    later = f"`autotune forecast {result.device}` tells more once the array is made."
    if _rebuild_s(result, result.winner) is None:
        console.print(f"How long a rebuild takes was not measured; {later}")
    else:
        console.print(
            "A rebuild of a disk is estimated from the speed of the check, for the whole disk; "
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


def show_shape(setting: Setting, _default: Setting) -> str:
    """A shape in one line, as the live view takes it."""
    return str(Shape.of(setting))


def print_made(console: Console, result: Result) -> None:
    """What comes after the array was made."""
    console.print(
        f"\n{result.device} is made, and its first sync runs: /proc/mdstat shows it, and `autotune "
        f"guard {result.device}` keeps it from disturbing. When it has ended and a filesystem is "
        "mounted, go on with:",
    )
    console.print(f"  {next_command(result)}", soft_wrap=True, highlight=False)


def next_command(result: Result) -> str:
    """What to go on with once the array is made."""
    return f"autotune run {result.device} --workload {shlex.quote(result.workload_given)}"
