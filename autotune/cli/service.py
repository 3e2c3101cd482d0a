"""`autotune service`."""

from typing import Annotated

import typer

from autotune.cli.options import Json

service = typer.Typer(no_args_is_help=True, help="Weekly re-tuning by systemd.")
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print each file, and write none.")]


@service.command()
def install(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Install the units: weekly re-tuning, restoring at each boot, guards where configured."""
    import json

    from autotune.preflight.checks import require_root
    from autotune.service import install as units

    if dry_run:
        texts = {str(path): text for path, text in units.files(units.command()).items()}
        print(json.dumps(texts, indent=2) if as_json else _joined(texts))
        return
    require_root()
    written = [str(path) for path in units.install()]
    print(json.dumps(written) if as_json else "\n".join(f"Wrote {path}" for path in written))


@service.command()
def remove(as_json: Json = False) -> None:
    """Stop and remove the units."""
    import json

    from autotune.preflight.checks import require_root
    from autotune.service import install as units

    require_root()
    removed = [str(path) for path in units.remove()]
    text = "\n".join(f"Removed {path}" for path in removed) or "It was not installed."
    print(json.dumps(removed) if as_json else text)


@service.command()
def status(as_json: Json = False) -> None:
    """Say whether the installed units are those of this version. Exit code 1 if not."""
    import json

    from autotune.service import install as units

    shown = units.status()
    text = "\n".join(f"{state:<11} {path}" for path, state in shown.items())
    print(json.dumps(shown, indent=2) if as_json else text)
    if set(shown.values()) != {"as shipped"}:
        raise typer.Exit(1)


def _joined(texts: dict[str, str]) -> str:
    return "\n".join(f"# {path}\n{text}" for path, text in texts.items())
