"""`python -m autotune.lab` is `autotune lab`."""

import typer

from autotune.cli.lab import lab
from autotune.errors import AutotuneError

if __name__ == "__main__":
    app = typer.Typer()
    app.command(context_settings={"ignore_unknown_options": True})(lab)
    try:
        app()
    except AutotuneError as error:
        typer.echo(error, err=True)
        raise SystemExit(error.exit_code) from error
