"""The command `autotune`. Each command's own imports happen when it runs, so that starting
is fast."""

import os
import signal
import sys
from typing import Annotated

import typer

from autotune.cli.advise import advise
from autotune.cli.apply import apply, unpersist
from autotune.cli.check import check
from autotune.cli.config import config
from autotune.cli.design import design
from autotune.cli.diff import diff
from autotune.cli.doctor import doctor
from autotune.cli.ending import ending
from autotune.cli.export import export
from autotune.cli.forecast import forecast
from autotune.cli.groups import GroupedCommands
from autotune.cli.guard import guard
from autotune.cli.history import history
from autotune.cli.import_ import import_
from autotune.cli.lab import lab
from autotune.cli.loading import end_at_once_while_loading
from autotune.cli.output import outlast_readers
from autotune.cli.plain_help import PlainCommand
from autotune.cli.profiles import profiles
from autotune.cli.report import report
from autotune.cli.restore import restore
from autotune.cli.retune import retune
from autotune.cli.run import run
from autotune.cli.service import service
from autotune.cli.show import show
from autotune.cli.solve import solve
from autotune.cli.status import status
from autotune.cli.terminal import choose_log_format
from autotune.tuning.supervised import supervise

COMPLETING = "_AUTOTUNE_COMPLETE"
"""Set by the shells: `_AUTOTUNE_COMPLETE=source_bash autotune` prints what makes bash ask."""
SUPERVISED = ("run", "import", "retune", "design")
"""What calculates with native libraries, which can end a process without a word."""

app = typer.Typer(
    cls=GroupedCommands,
    no_args_is_help=True,
    # With its options; without them the shells still ask by this variable.
    add_completion=COMPLETING in os.environ,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(cls=PlainCommand)(run)
app.command(cls=PlainCommand)(show)
app.command(cls=PlainCommand)(doctor)
app.command(cls=PlainCommand)(advise)
app.command(cls=PlainCommand)(design)
app.command(cls=PlainCommand)(apply)
app.command(cls=PlainCommand)(restore)
app.command(cls=PlainCommand)(unpersist)
app.command(cls=PlainCommand)(export)
app.command(cls=PlainCommand)(status)
app.command("import", cls=PlainCommand)(import_)
app.command(cls=PlainCommand)(profiles)
app.command(cls=PlainCommand)(diff)
app.command(cls=PlainCommand)(history)
app.command(cls=PlainCommand)(solve)
app.command(cls=PlainCommand)(report)
app.command(cls=PlainCommand)(forecast)
app.command(cls=PlainCommand)(guard)
app.command(cls=PlainCommand)(check)
app.command(cls=PlainCommand)(lab)
app.command(cls=PlainCommand)(retune)
app.add_typer(config, name="config")
app.add_typer(service, name="service")


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"autotune {version('autotune-md')}")
        raise typer.Exit


@app.callback()
def autotune(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find, prove and keep the settings that make a Linux software RAID array fast."""


def command() -> None:
    """The command line, in a process of its own where that may die."""
    # Read when numpy is loaded. The models are small: more threads take three times the processor
    # time for the same answer, and take it from the load that is measured.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(supervised=sys.argv[1:2] != [] and sys.argv[1] in SUPERVISED)


def main(supervised: bool = False) -> None:
    """Run the command line."""
    # Ignored by whoever started this, it would never tell of the worker's end, nor how fio's was.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if os.geteuid() == 0:
        # What root makes, such as folders of units, is for nobody else to change.
        os.umask(os.umask(0o022) | 0o022)
    end_at_once_while_loading()
    outlast_readers()
    choose_log_format(sys.argv[1:])
    with ending("--json" in sys.argv[1:]):
        code = supervise() if supervised else None
        if code is not None:
            sys.exit(code)
        app()
