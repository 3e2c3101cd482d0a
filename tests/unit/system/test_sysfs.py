"""What is read from sysfs to be put back."""

import errno
import threading
from pathlib import Path

import pytest

from autotune.errors import InfeasibleError
from autotune.system import sysfs


def test_a_speed_that_reads_as_negative_is_put_back_as_it_was_set(tmp_path: Path) -> None:
    speed = tmp_path / "sync_speed_max"
    speed.write_text("-1 (local)\n")
    assert sysfs.original(speed) == "4294967295"
    other = tmp_path / "other"
    other.write_text("-1\n")
    assert sysfs.original(other) == "-1"


def test_a_store_that_comes_through_late_is_known_till_then(tmp_path: Path) -> None:
    file, answers = tmp_path / "group_thread_cnt", threading.Event()
    sysfs._stores[file] = thread = threading.Thread(target=answers.wait, args=(20,))
    thread.start()
    assert sysfs.is_late(file)
    with pytest.raises(InfeasibleError, match="has not come through"):
        sysfs.await_late(0.1)
    answers.set()
    sysfs.await_late()
    assert not sysfs.is_late(file)


def test_an_error_while_it_is_read_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object, **__: object) -> str:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(Path, "read_bytes", gone)
    with pytest.raises(OSError, match="No such device") as caught:
        sysfs.read(tmp_path / "read_expire")
    assert caught.value.filename == str(tmp_path / "read_expire")
