"""What `autotune` and `python -m autotune` run."""

from autotune.cli.terminal import open_what_is_closed


def command() -> None:
    """The command line."""
    # Before anything is imported that keeps a file open, as libffi behind ctypes does (3.5).
    open_what_is_closed()
    from autotune.cli import main  # noqa: PLC0415

    main.command()


if __name__ == "__main__":
    command()
