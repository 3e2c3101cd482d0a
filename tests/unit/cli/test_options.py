"""Messages that several commands share."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, cast

import fake_sysfs
import pytest

from autotune.cli.options import persist_applied
from autotune.deploy import persist
from autotune.errors import AutotuneError
from autotune.safety import applied, locks
from autotune.system import array


@pytest.mark.parametrize(
    ("is_there", "said"),
    [
        (True, "until the next reboot, but it is not persisted"),
        (False, "put back on /dev/md0 by another command just now, so nothing is persisted"),
    ],
)
def test_a_profile_that_cannot_be_persisted_is_said_to_be_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool, said: str
) -> None:
    """If it still is."""

    def full(*_: object) -> None:
        raise AutotuneError("/etc/x cannot be written (No space left), so nothing was persisted.")

    monkeypatch.setattr(persist, "persist", full)
    fake_sysfs.raid6(tmp_path)
    found = array.find_array("md0", tmp_path)
    monkeypatch.setattr(array, "find_array", lambda _: found)
    monkeypatch.setattr(applied, "is_applied", lambda *_: is_there)
    monkeypatch.setattr(locks, "lock", lambda _: nullcontext())
    with pytest.raises(AutotuneError, match=said) as e:
        persist_applied(cast(Any, None), "/dev/md0", tmp_path, {"after": {"read_ahead_kb": 512}})
    assert e.value.document == {"after": {"read_ahead_kb": 512}}


def test_two_commands_do_not_persist_at_the_same_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_sysfs.raid6(tmp_path)
    found = array.find_array("md0", tmp_path)
    monkeypatch.setattr(array, "find_array", lambda _: found)
    ours = partial(locks.lock, folder=tmp_path / "locks")
    monkeypatch.setattr(locks, "lock", ours)
    with ours(found), pytest.raises(AutotuneError, match="but it is not persisted"):
        persist_applied(cast(Any, None), "/dev/md0", tmp_path, {})
