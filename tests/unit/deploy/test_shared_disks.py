"""Two arrays on the same disks: whose profile comes second leaves these alone, and says so."""

import os
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import (
    apply_values,
    persist_values,
    persisted_before,
    schedulers,
    set_all,
    shrink,
    start,
    undo,
)
from some_profile import profile

from autotune.deploy import persist
from autotune.deploy.left_alone import without_left_alone
from autotune.deploy.persist import unpersist
from autotune.deploy.persisted import profile_path
from autotune.deploy.shared_disks import set_by_another
from autotune.errors import RefusalError
from autotune.measure.workload import load_workload
from autotune.safety.paths import applied_profile_path
from autotune.system import sysfs
from autotune.system.array import Array, list_arrays
from autotune.tuning import prepare as preparing
from autotune.tuning.preparation import GIVEN, Given, Options


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    """md0 and md1, both on all five disks."""
    fake_sysfs.raid6(tmp_path)
    start(tmp_path)
    block = tmp_path / "sys/block"
    shutil.copytree(block / "md0", block / "md1", symlinks=True)
    (block / "md1/md/uuid").write_text("a" * 32 + "\n")
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    for name in ("check", "tell_udev"):
        monkeypatch.setattr(persist, name, lambda *_: None)
    return list_arrays(tmp_path)


def told(array: Array, state: Path) -> str:
    """What is said of a profile that sets the scheduler and the array's own cache."""
    rest, said = without_left_alone(
        profile({"scheduler": "bfq", "stripe_cache_size": 512}), array, state
    )
    assert list(rest.knobs) == (
        ["stripe_cache_size"] if said else ["scheduler", "stripe_cache_size"]
    )
    return said


def test_disks_that_nobody_has_set_are_set(tmp_path: Path, arrays: list[Array]) -> None:
    apply_values(arrays[0], {"stripe_cache_size": 512}, tmp_path)
    apply_values(arrays[1], {"scheduler": "bfq"}, tmp_path)
    assert told(arrays[1], tmp_path) == ""


def test_what_is_applied_to_another_array_is_left_to_it_until_that_is_undone(
    tmp_path: Path, arrays: list[Array]
) -> None:
    apply_values(arrays[0], {"nr_requests": 32}, tmp_path)
    said = told(arrays[1], tmp_path)
    assert said.startswith("scheduler: left as found, since the profile of /dev/md0 ")
    assert said.endswith("; `autotune restore /dev/md0` ends that.")
    undo(arrays[0], tmp_path)
    assert told(arrays[1], tmp_path) == ""


def test_what_is_persisted_is_its_own_too(tmp_path: Path, arrays: list[Array]) -> None:
    persist_values(arrays[0], {"scheduler": "kyber"}, tmp_path)
    start(tmp_path, "later")
    said = told(arrays[1], tmp_path)
    assert "`autotune unpersist /dev/md0`, then `autotune restore /dev/md0`, ends that" in said
    unpersist(arrays[0].uuid, tmp_path)
    assert told(arrays[1], tmp_path) == ""


def test_it_ends_with_a_reboot_if_it_is_only_applied(tmp_path: Path, arrays: list[Array]) -> None:
    apply_values(arrays[0], {"scheduler": "bfq"}, tmp_path)
    start(tmp_path, "later")
    assert told(arrays[1], tmp_path) == ""


@pytest.mark.parametrize("shared", [False, True])
def test_arrays_on_other_disks_do_not_matter(
    tmp_path: Path, arrays: list[Array], shared: bool
) -> None:
    for member in arrays[1].members[: 2 if shared else 3]:
        shutil.rmtree(arrays[1].md / f"dev-{member.name}")
    shrink(arrays[0], 3)
    first, second = list_arrays(tmp_path)
    assert set(first.disks).isdisjoint(second.disks) is not shared
    apply_values(first, {"scheduler": "bfq"}, tmp_path)
    assert bool(told(second, tmp_path)) is shared


def test_a_disk_that_has_gone_over_to_another_array_is_still_the_firsts(
    tmp_path: Path, arrays: list[Array]
) -> None:
    for number, path in enumerate(schedulers(arrays[0])):
        (path.parents[1] / "wwid").write_text(f"disk-{number}\n")
    for member in arrays[1].members[:3]:
        shutil.rmtree(arrays[1].md / f"dev-{member.name}")
    first, second = list_arrays(tmp_path)
    persist_values(first, {"scheduler": "bfq"}, tmp_path)
    shrink(first, 3)
    assert "/dev/md0" in told(second, tmp_path)


@pytest.mark.parametrize("how", ["applied", "persisted"])
def test_an_array_that_does_not_run_has_its_profile_still(
    tmp_path: Path, arrays: list[Array], how: str
) -> None:
    if how == "applied":
        apply_values(arrays[0], {"scheduler": "bfq"}, tmp_path)
    else:
        persisted_before(arrays[0], {"scheduler": "bfq"}, {"scheduler": "mq-deadline"})
    shutil.rmtree(arrays[0].block)
    said = told(list_arrays(tmp_path)[0], tmp_path)
    ends = {
        "applied": "restore --all` ends that.",
        "persisted": f"unpersist {arrays[0].uuid}`, then `autotune restore --all`, ends that.",
    }
    assert "which does not run, has set disks" in said
    assert said.endswith(f"; `autotune {ends[how]}")


@pytest.mark.parametrize("running", [True, False])
def test_a_profile_that_cannot_be_read_may_set_them(
    tmp_path: Path, arrays: list[Array], running: bool
) -> None:
    path = persisted_before(arrays[0], {"stripe_cache_size": 512}, {"stripe_cache_size": 256})
    assert told(arrays[1], tmp_path) == ""
    path.write_text('{"schema_version": 99}')
    if not running:
        shutil.rmtree(arrays[0].block)
    assert "unpersist" in told(list_arrays(tmp_path)[-1], tmp_path)


def test_a_knob_of_a_later_version_may_set_them(tmp_path: Path, arrays: list[Array]) -> None:
    path = persisted_before(arrays[0], {"stripe_cache_size": 512}, {"stripe_cache_size": 256})
    path.write_text(path.read_text().replace("stripe_cache_size", "later_knob"))
    assert "/dev/md0" in told(arrays[1], tmp_path)


def test_what_a_profile_has_to_put_back_on_disks_is_its_own(
    tmp_path: Path, arrays: list[Array]
) -> None:
    """A later one of the same array sets no disk any more, and yet speaks for them."""
    apply_values(arrays[0], {"scheduler": "bfq"}, tmp_path)
    apply_values(arrays[0], {"stripe_cache_size": 512}, tmp_path)
    assert "/dev/md0" in told(arrays[1], tmp_path)


def test_a_run_tunes_what_is_left(
    tmp_path: Path, arrays: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so first; what was given to be measured is refused."""
    apply_values(arrays[0], {"scheduler": "bfq"}, tmp_path)
    monkeypatch.setattr(preparing, "find_array", lambda _device: arrays[1])
    options = Options(arrays[1].device, load_workload("balanced"))
    prepared = preparing.prepare(options, tmp_path)
    names = [knob.name for knob in prepared.knobs]
    assert "scheduler" not in names
    assert "stripe_cache_size" in names
    assert prepared.said_first[0].startswith("scheduler: left as found, since the profile of")
    given = Given("elsewhere", {"scheduler": "bfq"})
    knobs = tuple(knob for knob in options.knobs if knob.name == "scheduler")
    for each in (
        Options(arrays[1].device, options.workload, given=given, strategy=GIVEN, knobs=knobs),
        Options(arrays[1].device, options.workload, knobs=knobs),
    ):
        with pytest.raises(RefusalError, match="since the profile of /dev/md0 has set disks"):
            preparing.prepare(each, tmp_path)


def test_the_files_that_were_written_last_do_not_decide(
    tmp_path: Path, arrays: list[Array]
) -> None:
    """Both have such profiles, as an earlier version let them: each is told of the other."""
    for array in arrays:
        persisted_before(array, {"scheduler": "bfq"}, {"scheduler": "mq-deadline"})
    set_all(schedulers(arrays[0]), "bfq")
    for array, other in zip(arrays, reversed(arrays), strict=True):
        found = set_by_another(array, tmp_path)
        assert found is not None
        assert found.name == other.device
        assert profile_path(other.uuid, tmp_path).exists()
        assert not applied_profile_path(tmp_path, other.uuid).exists()


def test_what_the_record_alone_says_is_left_to_it(tmp_path: Path, arrays: list[Array]) -> None:
    """A disk that reads otherwise, as one that has just joined, and a profile applied later, which
    does not name the setting any more."""
    apply_values(arrays[0], {"nr_requests": 32}, tmp_path)
    fake_sysfs.write(tmp_path / "sys/block/sda/queue/nr_requests", "48")
    apply_values(arrays[0], {"read_ahead_kb": 512}, tmp_path)
    assert "nr_requests" not in applied_profile_path(tmp_path, arrays[0].uuid).read_text()
    assert told(arrays[1], tmp_path)
    undo(arrays[0], tmp_path)
    assert told(arrays[1], tmp_path) == ""
