"""What is said reaches the terminal as text alone."""

import pytest

from autotune.cli.terminal import console, notice
from autotune.report.lines import print_indented

THEIRS = "/mnt/md0/.autotune-x\x1b[2K\x1b[1A\x07"


def test_a_strangers_file_name_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    notice(f"The folder {THEIRS} is left.\nRemove it.")
    print_indented(console(), f"note: {THEIRS}")
    said = capsys.readouterr()
    assert said.err == "autotune: The folder /mnt/md0/.autotune-x?[2K?[1A? is left.\nRemove it.\n"
    assert said.out == "  note: /mnt/md0/.autotune-x?[2K?[1A?\n"
