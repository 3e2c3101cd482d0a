"""Programs that are missing, fail or hang end nothing."""

import pytest

from autotune.advice import tools
from autotune.advice.tools import output
from autotune.system.layers import UnseenError


def test_what_a_program_prints() -> None:
    assert output("coreutils", "echo", "hello") == "hello\n"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("nonsense-tool",), r"needs xfsprogs \(`apt install xfsprogs`"),
        (("false",), "false failed"),
        (("sleep", "60"), "sleep did not answer"),
    ],
)
def test_one_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], reason: str
) -> None:
    monkeypatch.setattr(tools, "TIMEOUT_S", 0.2)
    with pytest.raises(UnseenError, match=reason):
        output("xfsprogs", *command)
