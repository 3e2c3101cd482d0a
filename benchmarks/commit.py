"""Which code a benchmark measures."""

import subprocess
from pathlib import Path


def commit(folder: Path) -> str:
    """The commit of a checkout; with a `+` if it is not quite that."""
    words = ("git", "-C", str(folder), "describe", "--always", "--exclude=*", "--dirty=+")
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
