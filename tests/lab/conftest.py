"""What lab tests share: a way to run things on real md arrays, or a reason why not."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from autotune.errors import RefusalError
from autotune.lab.processes import PACKAGES, require

REPOSITORY = Path(__file__).parents[2]
OWN = "--basetemp=/tmp/autotune-in-the-lab"
"""For pytest in the lab: its usual folder belongs to whoever has started that, who is not root
there."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let two workers, which begin with half of the tests each, both begin with the longest."""
    longest = [item for item in items if item.path.name == "test_run.py"]
    rest = [item for item in items if item not in longest]
    half = len(rest) // 2
    items[:] = [*longest[::2], *rest[:half], *longest[1::2], *rest[half:]]


class Lab(Protocol):
    """Boots a scenario, runs something in it, and returns how that ended."""

    def __call__(
        self,
        scenario: str,
        command: Sequence[str] | str,
        *,
        out: Path | None = None,
        timeout_s: float = 120,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(scope="session")
def lab() -> Lab:
    """Return a function that runs a command, or Python source, in the lab.

    A boot takes about 5 s, so make many checks in one. The simplest way is a file of ordinary
    tests, `guest_*.py`, which the host's pytest does not collect:
    `lab("raid5-hdd", ["pytest", "-p", "no:cacheprovider", "tests/lab/guest_knobs.py"])`.
    """
    try:
        require(list(PACKAGES))
    except RefusalError as error:
        pytest.skip(str(error))

    def run(
        scenario: str,
        command: Sequence[str] | str,
        *,
        out: Path | None = None,
        timeout_s: float = 120,
    ) -> subprocess.CompletedProcess[str]:
        if isinstance(command, str):
            command = [sys.executable, "-c", command]
        options = ["--out", str(out)] if out else []
        return subprocess.run(
            [sys.executable, "-m", "autotune.lab", *options, scenario, "--", *command],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    return run
