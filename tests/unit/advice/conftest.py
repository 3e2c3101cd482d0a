"""No test of advice starts a program."""

import pytest

from autotune.advice import alignment, geometry
from autotune.system.programs import UnseenError


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return what programs print, by name; none is there but these."""
    said: dict[str, str] = {}

    def output(package: str, *command: str) -> str:
        if command[0] not in said:
            raise UnseenError(f"needs {package}")
        return said[command[0]]

    for module in (alignment, geometry):
        monkeypatch.setattr(module, "output", output)
    return said
