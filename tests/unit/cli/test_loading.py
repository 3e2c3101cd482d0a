"""Ctrl-C while something is loaded."""

import subprocess
import sys
from pathlib import Path

import pytest

SWALLOW = """
import os, signal

def swallow():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        pass
"""
PROGRAM = """
import signal, sys
# Whoever runs the tests may ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
from autotune.cli.loading import end_at_once_while_loading
end_at_once_while_loading()
sys.path.insert(0, {folder!r})
{does}
print("goes on")
"""


@pytest.mark.parametrize(
    ("does", "ends"),
    [
        ("import swallows", True),
        ("from pydantic.within import swallow; swallow()", True),
        ("from elsewhere import swallow; swallow()", False),
    ],
)
def test_nothing_goes_on_that_was_to_end_while_it_was_loaded(
    tmp_path: Path, does: str, ends: bool
) -> None:
    (tmp_path / "pydantic").mkdir()
    (tmp_path / "swallows.py").write_text(f"{SWALLOW}\nswallow()\n")
    for name in ("elsewhere.py", "pydantic/within.py", "pydantic/__init__.py"):
        (tmp_path / name).write_text(SWALLOW)
    words = [sys.executable, "-c", PROGRAM.format(folder=str(tmp_path), does=does)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ((1, "") if ends else (0, "goes on\n"))
    assert done.stderr == ("autotune: Interrupted.\n" if ends else "")
