"""One run at a time, and none on what an earlier one left."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import RefusalError
from autotune.safety.locks import is_held, lock
from autotune.system.array import Array, find_array


@pytest.fixture
def array(tmp_path: Path) -> Array:
    fake_sysfs.raid6(tmp_path)
    return find_array("md0", tmp_path)


def test_an_array_is_held_once(array: Array, tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    assert not is_held(array.uuid, locks)
    with lock(array, folder=locks):
        assert is_held(array.uuid, locks)
        with pytest.raises(RefusalError, match="Another run"), lock(array, folder=locks):
            pass
    assert not is_held(array.uuid, locks)


def test_what_an_earlier_run_left_with_another_state_dir_is_found(
    array: Array, tmp_path: Path
) -> None:
    locks, journals = tmp_path / "locks", [tmp_path / s / "journal/u.jsonl" for s in ("a", "b")]
    with lock(array, journals[0], locks):
        journals[0].parent.mkdir(parents=True)
        journals[0].touch()
    # A restore of something else in between forgets nothing.
    with lock(array, folder=locks):
        pass
    with pytest.raises(RefusalError, match=f"--state-dir {tmp_path}/a` first"):  # noqa: SIM117
        with lock(array, journals[1], locks):
            pass
    with lock(array, journals[0], locks):
        journals[0].unlink()
    with lock(array, journals[1], locks):
        pass
