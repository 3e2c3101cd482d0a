"""`python -m autotune`."""

from autotune.cli.main import command

command()
