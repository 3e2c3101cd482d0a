"""`autotune design`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli import complete
from autotune.cli.options import STATE_DIR, Json, StateDir, read
from autotune.cli.terminal import console, notice, say

if TYPE_CHECKING:
    from collections.abc import Iterable

Option = typer.Option
CTRL_C = "Ctrl-C removes what was made."


def design(
    disks: Annotated[
        list[str],
        typer.Argument(metavar="DISK...", help="The blank disks, such as /dev/sdb /dev/sdc."),
    ],
    destructive: Annotated[
        list[str] | None,
        Option(
            metavar="DISKS",
            help="The same disks again, separated by commas or repeated: what is on them is lost.",
        ),
    ] = None,
    level: Annotated[
        list[str] | None,
        Option(
            metavar="NAMES",
            help="Only these levels: raid1, raid5, raid6, raid10. [default: all that survive the "
            "failure of a disk]",
        ),
    ] = None,
    consistency: Annotated[
        list[str] | None,
        Option(
            metavar="NAMES",
            help="Only these: bitmap, ppl (RAID 5), resync (no bitmap). [default: bitmap,ppl]",
        ),
    ] = None,
    workload: Annotated[
        str,
        Option(
            metavar="NAME|FILE",
            autocompletion=complete.workloads,
            help="What the array will be used for, as `autotune run` takes it.",
        ),
    ] = "balanced",
    time: Annotated[
        str, Option(metavar="TIME", help="How long the whole design may take, such as 2h.")
    ] = "30min",
    p99_ceiling: Annotated[
        list[str] | None,
        Option(
            metavar="LIMIT",
            help="Limit for the p99: 20ms, 1.5x (of the idle array's), or PHASE=20ms; repeatable. "
            "[default: the workload's, or none]",
        ),
    ] = None,
    create: Annotated[
        bool, Option("--create", help="Make the array that was found, once all is measured.")
    ] = False,
    as_json: Json = False,
    state_dir: StateDir = STATE_DIR,
) -> None:
    """Measure on blank disks which array to make: level, chunk, layout, bitmap.

    Small arrays are made on a slice of each disk, one after the other, and removed. A disk with
    a signature, partition, mount or holder is refused, named twice or not. Data without a
    signature, such as LUKS with its header elsewhere, are not seen, and are lost. It is new, and
    was tried on simulated disks only.

    Example: autotune design /dev/sdb /dev/sdc --destructive /dev/sdb,/dev/sdc
    """
    import json

    from autotune.design.design import Options, make
    from autotune.design.design import design as find
    from autotune.errors import AutotuneError
    from autotune.measure.workload import load_workload
    from autotune.preflight.checks import require_root
    from autotune.problem.ceilings import parse_ceiling
    from autotune.quantities import parse_seconds
    from autotune.report import design as report
    from autotune.report.design_document import document
    from autotune.report.live import LiveReporter

    options = Options(
        tuple(disks),
        _names(destructive),
        load_workload(workload),
        _names(level),
        _names(consistency),
        tuple(read("--p99-ceiling", parse_ceiling, text) for text in p99_ceiling or ()),
        read("--time", parse_seconds, time),
        workload_given=workload,
    )
    require_root()
    shown = console(stderr=True)
    with LiveReporter(shown, CTRL_C, "mdadm's default", report.show_shape) as reporter:
        result = find(options, state_dir, reporter)
    found = document(result, made=False)
    if not as_json:
        report.print_design(console(), found)
    found["name"] = _kept(found, state_dir)
    if not as_json and found["name"]:
        say(f"`autotune report {found['name']}` makes a page of it, with pictures.")
    if create:
        try:
            make(result, state_dir, shown.print)
        except AutotuneError as error:
            # What was measured is not lost.
            raise AutotuneError(str(error), found) from None
        found["made"] = result.device
    if as_json:
        print(json.dumps(found, indent=2))
    elif create:
        report.print_made(console(), found)


def _kept(found: dict[str, Any], state_dir: Path) -> str | None:
    """Its name for `autotune report`. A full disk does not take the answer away."""
    from autotune.design.stored import keep
    from autotune.errors import AutotuneError

    try:
        return keep(found, state_dir)
    except AutotuneError as error:
        notice(str(error))
        return None


def _names(given: "Iterable[str] | None") -> tuple[str, ...]:
    """What is repeated, or separated by commas."""
    return tuple(name.strip() for text in given or () for name in text.split(",") if name.strip())
