"""Messages that several commands share."""

from pathlib import Path
from typing import Any, cast

import pytest

from autotune.cli.options import persist_applied
from autotune.deploy import persist
from autotune.errors import AutotuneError
from autotune.system import array


def test_a_profile_that_cannot_be_persisted_is_said_to_be_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise AutotuneError("/etc/x cannot be written (No space left), so nothing was persisted.")

    monkeypatch.setattr(persist, "persist", full)
    monkeypatch.setattr(array, "find_array", lambda _: None)
    with pytest.raises(AutotuneError, match="until the next reboot, but it is not persisted") as e:
        persist_applied(cast(Any, None), "/dev/md0", tmp_path, {"after": {"read_ahead_kb": 512}})
    assert e.value.document == {"after": {"read_ahead_kb": 512}}
