"""What `autotune` and `python -m autotune` run."""

import sys


def command() -> None:
    """The command line."""
    # Nothing is imported outside, where Ctrl-C would end in a traceback.
    try:
        from autotune.cli.terminal import open_what_is_closed

        # Before anything is imported that keeps a file open, as libffi behind ctypes does (3.5).
        open_what_is_closed()
        from autotune.cli import main

        main.command()
    except KeyboardInterrupt:
        sys.exit("autotune: Interrupted.")


if __name__ == "__main__":
    command()
