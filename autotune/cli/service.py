"""`autotune service`."""

from typing import Annotated

import typer

from autotune.cli.options import Json
from autotune.cli.plain_help import PlainCommand
from autotune.cli.terminal import say

SERVICE = "service"
service = typer.Typer(no_args_is_help=True, help="The systemd units: re-tuning, guards, checks.")
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print each file, and write none.")]


@service.command(cls=PlainCommand)
def install(
    dry_run: DryRun = False,
    take_over_checks: Annotated[
        bool,
        typer.Option(
            "--take-over-checks",
            help="Also turn off the system's own checks (cron, mdcheck, raid-check), until "
            "`service remove`.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Install the units, and start what is configured.

    These are weekly re-tuning, cleaning up at each boot and after a kill, and guards and checks
    where the configuration wants them.
    """
    import json

    from autotune.cli.terminal import notice
    from autotune.preflight.checks import require_root
    from autotune.safety.locks import alone
    from autotune.service import CONFIG, take_over, unchecked
    from autotune.service import install as units

    if dry_run:
        texts = {str(path): text for path, text in units.files(units.command()).items()}
        print(json.dumps(texts, indent=2) if as_json else _joined(texts))
        if take_over_checks:
            notice(f"It would turn off {' and '.join(take_over.found()) or 'nothing'}.")
        return
    require_root()
    if take_over_checks or unchecked.are_off():
        unchecked.refuse_if_unchecked()
    with alone(SERVICE):
        stale = units.by_name()
        written = [str(path) for path in units.install()]
        taken = take_over.take() if take_over_checks else []
    if unguarded := {_array(name) for name in stale} - {*units.guarded().values()}:
        arrays = " and ".join(sorted(unguarded))
        notice(
            f"Guards go by the array's UUID now, so nothing guards {arrays} any more; set "
            f"guard_p99 in {CONFIG} and install again."
        )
    lines = [*(f"Wrote {path}" for path in written), *(f"Turned off {name}" for name in taken)]
    print(json.dumps([*written, *taken]) if as_json else "\n".join(lines))
    if units.checked() and (others := take_over.found()):
        notice(
            f"{' and '.join(others)} also checks the arrays; `autotune service install "
            "--take-over-checks` turns that off, until `autotune service remove`."
        )


@service.command(cls=PlainCommand)
def remove(as_json: Json = False) -> None:
    """Stop and remove the units.

    What else checked the arrays, and was turned off for them, is turned on again.
    """
    import json

    from autotune.cli.terminal import notice
    from autotune.preflight.checks import require_root
    from autotune.safety.locks import alone
    from autotune.service import install as units
    from autotune.service import take_over

    require_root()
    with alone(SERVICE):
        # First: if that fails, all is as it was.
        given = take_over.give_back()
        kept = units.others()
        removed = [str(path) for path in units.remove()]
    lines = [*(f"Turned on {name}" for name in given), *(f"Removed {path}" for path in removed)]
    print(
        json.dumps([*given, *removed]) if as_json else "\n".join(lines or ["It was not installed."])
    )
    for path, now in kept.items():
        notice(f"{path} was not as autotune wrote it, so it is kept as {now}.")


@service.command(cls=PlainCommand)
def status(as_json: Json = False) -> None:
    """Say whether the installed units are those of this version. Exit code 1 if not."""
    import json

    from autotune.service import install as units

    shown = units.status()
    text = "\n".join(f"{state:<11} {path}" for path, state in shown.items())
    print(json.dumps(shown, indent=2) if as_json else text)
    if not as_json and set(shown.values()) == {"missing"}:
        say("The units are optional: `autotune service install` adds them.")
    if set(shown.values()) != {"as shipped"}:
        raise typer.Exit(1)


def _array(guard: str) -> str:
    """The name in a guard's unit."""
    return guard.partition("@")[2].removesuffix(".service")


def _joined(texts: dict[str, str]) -> str:
    return "\n".join(f"# {path}\n{text}" for path, text in texts.items())
