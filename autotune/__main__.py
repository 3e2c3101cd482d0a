"""`python -m autotune`."""

from autotune.cli.main import main

main()
