"""Compiles what the lab has in C: the disk model, and what its kernel is started with."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import AutotuneError

_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-fPIC", "-shared")


def compile_library(target: Path, folder: str, sources: Sequence[str]) -> None:
    """Compile files of `lab/<folder>` to a shared library. Raise AutotuneError if that fails."""
    paths = [Path(__file__).parent / folder / name for name in sources]
    result = subprocess.run(
        ["cc", *_FLAGS, "-o", target, *paths, "-lpthread", "-lm", "-ldl"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise AutotuneError(
            f"The lab's {folder} does not compile; cc says: {result.stderr.strip()}"
        )
