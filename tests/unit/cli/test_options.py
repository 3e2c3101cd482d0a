"""Messages that several commands share."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.cli.options import persist_applied
from autotune.deploy import persist
from autotune.errors import AutotuneError
from autotune.system import array


def full(*_: object) -> None:
    raise AutotuneError("/etc/x cannot be written (No space left), so nothing was persisted.")


@pytest.mark.parametrize(
    ("persisting", "said"),
    [
        (full, "until the next reboot, but it is not persisted: /etc/x cannot be written"),
        (lambda *_: None, "Another command has put the profile back on /dev/md0 just now, or has"),
    ],
)
def test_a_profile_that_cannot_be_persisted_is_said_to_be_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, persisting: object, said: str
) -> None:
    """If it still is."""
    monkeypatch.setattr(persist, "persist_applied", persisting)
    fake_sysfs.raid6(tmp_path)
    found = array.find_array("md0", tmp_path)
    monkeypatch.setattr(array, "find_array", lambda _: found)
    with pytest.raises(AutotuneError, match=said) as e:
        persist_applied({}, "/dev/md0", tmp_path, {"after": {"read_ahead_kb": 512}})
    assert e.value.document == {"after": {"read_ahead_kb": 512}}
