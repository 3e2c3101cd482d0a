"""What is added to the stripe cache goes while a sync is held back."""

import dataclasses
from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import InfeasibleError
from autotune.guard.stripe_cache import EACH_S, StripeCache, files
from autotune.safety.new_journal import new_journal
from autotune.system import sysfs
from autotune.system.array import Array, find_array


@pytest.fixture
def array(tmp_path: Path) -> Array:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/sys/kernel/random/boot_id", "boot")
    machine.put("sys/block/md0/md/stripe_cache_size", "512")
    return find_array("md0", tmp_path)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(sysfs, "write", lambda path, text, *_: found.append((path.name, text)))
    return found


def cache_of(array: Array, folder: Path) -> StripeCache:
    return StripeCache(array, new_journal(folder / "j", array.uuid, "md0", files(array), folder))


def shrink(cache: StripeCache, now_s: float) -> None:
    cache.shrink(now_s)
    if cache._writing is not None:
        cache._writing.join()


def test_the_size_that_is_set_is_written_again_now_and_then(
    array: Array, tmp_path: Path, written: list[tuple[str, str]]
) -> None:
    cache = cache_of(array, tmp_path)
    for now_s in (1.0, 2.0, 1.0 + EACH_S):
        shrink(cache, now_s)
    assert written == [("stripe_cache_size", "512")] * 2


@pytest.mark.parametrize("change", [{"level": "raid1"}, {"reshape_position": "4096"}])
def test_what_has_none_and_what_a_reshape_needs_is_left_alone(
    array: Array, tmp_path: Path, written: list[tuple[str, str]], change: dict[str, str]
) -> None:
    changed = dataclasses.replace(array, **change)  # type: ignore[arg-type]
    shrink(cache_of(changed, tmp_path), 1.0)
    assert written == []


def test_a_size_that_cannot_be_written_disturbs_nobody(
    array: Array, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path, _text: str) -> None:
        raise InfeasibleError("no")

    monkeypatch.setattr(sysfs, "write", refuse)
    shrink(cache_of(array, tmp_path), 1.0)


def test_what_somebody_else_sets_is_theirs(
    array: Array, tmp_path: Path, written: list[tuple[str, str]]
) -> None:
    cache = cache_of(array, tmp_path)
    (array.md / "stripe_cache_size").write_text("4096")
    shrink(cache, 1.0)
    assert written == []
