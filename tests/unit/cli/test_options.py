"""Messages that several commands share."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.cli.options import persist_applied
from autotune.cli.wrong_usage import usage_error
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["report", "1", "--out", "/none-such/a.html"], "There is no folder /none-such; make it"),
        (["run", "/dev/md0", "--time"], "--time takes a value; `autotune run --help`"),
        (["doctor", ""], "DEVICE is empty"),
        (["lab", "raid5-hdd", "--json"], "--json is for --list"),
        (["status", "--state-dir", "/none\u2028such"], "The name of the folder has a line break"),
    ],
)
def test_wrong_usage_says_what_to_do_and_changes_nothing(words: list[str], said: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "autotune", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert not Path("/none-such").exists()


def test_who_may_not_read_the_state_folder_is_told_to_use_sudo() -> None:
    text = "Invalid value for '--state-dir': Path '/var/lib/autotune' is not readable."
    error = usage_error(SimpleNamespace(ctx=None, format_message=lambda: text))
    assert str(error) == "You may not read /var/lib/autotune; run autotune with sudo."
