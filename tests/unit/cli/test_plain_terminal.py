"""A terminal that knows no arrows, as in the locale C."""

import os
import subprocess
import sys

SAYS = r"""
import sys
from autotune.cli.ending import ending
with ending(False):
    print("\u00d71.20 (1.10\u20131.30) 12 \u00b5s \u2192 \u2265 5 \u2581\u2588 \u6f22")
"""


def test_what_a_terminal_cannot_show_is_said_in_plain_characters() -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SAYS], capture_output=True, check=True, env={**os.environ, **plain}
    )
    assert done.stdout == b"x1.20 (1.10-1.30) 12 us > >= 5 18 ?\n"
