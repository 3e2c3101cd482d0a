"""Two arrays on the same disks, a profile on each: whichever is undone first, the disks get back
what they had before both."""

import itertools
import os
import random
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import fake_sysfs
import pytest
from some_profile import profile

from autotune.deploy import persist
from autotune.deploy.apply import known_here
from autotune.deploy.persist import profile_path, rule_path
from autotune.deploy.undo import before_persisted
from autotune.knobs import ALL, by_name, for_array, read_setting
from autotune.knobs.before import with_before
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import save_profile
from autotune.safety.applied import keep_applied, left_on_disks, stopped_array
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.record import BOOT_ID
from autotune.safety.restore import Outcome, restore
from autotune.system import sysfs
from autotune.system.array import Array, list_arrays

ORIGINAL = "mq-deadline"


@pytest.fixture
def arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Array]:
    fake_sysfs.raid6(tmp_path)
    block, boot = tmp_path / "sys/block", tmp_path / BOOT_ID.relative_to("/")
    boot.parent.mkdir(parents=True, exist_ok=True)
    boot.write_text("b\n")
    shutil.copytree(block / "md0", block / "md1", symlinks=True)
    (block / "md1/md/uuid").write_text("a" * 32 + "\n")
    monkeypatch.setattr(sysfs, "write", fake_sysfs.write)
    for name in ("check", "tell_udev"):
        monkeypatch.setattr(persist, name, lambda *_: None)
    return list_arrays(tmp_path)


def scheduler(array: Array) -> Path:
    return array.root / "sys/block" / array.disks[0] / "queue/scheduler"


def schedulers(array: Array) -> list[Path]:
    return [array.root / "sys/block" / disk / "queue/scheduler" for disk in array.disks]


def applied(array: Array, state: Path, value: str, file: Path | None = None) -> None:
    """As `autotune apply` leaves it."""
    made = profile({"scheduler": value} if file is None else {})
    known = known_here(made, array, read_setting(array, [by_name("scheduler")]), state)
    file = file or scheduler(array)
    paths = journaled_paths(array, for_array(array, ALL))
    path = journal_path(state, array.uuid)
    journal = new_journal(path, array.uuid, array.device, paths, array.root)
    journal.writing(file, value)
    journal.store(file, value)
    journal.settled()
    keep_applied(known, array, journal, state)
    journal.release()


@pytest.mark.parametrize("values", [("none", "bfq"), ("none", ORIGINAL), ("none", "none")])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_was_applied(
    tmp_path: Path, arrays: list[Array], values: tuple[str, str], order: tuple[int, int]
) -> None:
    for array, value in zip(arrays, values, strict=True):
        applied(array, tmp_path / "state", value)
    for number in order:
        assert undone(arrays[number], tmp_path / "state").complete
    assert sysfs.value(scheduler(arrays[0])) == ORIGINAL


def undone(array: Array, state: Path) -> Outcome:
    path = applied_path(state, array.uuid)
    journal = Journal.claimed(path)
    outcome = restore(journal, array.root)
    journal.release()
    assert not path.exists()
    return outcome


def read_expire(array: Array) -> Path:
    return scheduler(array).parent / "iosched/read_expire"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    "values",
    [
        (0, "bfq", 1, ORIGINAL, 0, "kyber"),
        (0, "bfq", 1, "none", 0, "bfq"),
        (0, "none", 1, "kyber", 0, "bfq", 1, "none"),
        (1, "none", 0, "kyber", 1, ORIGINAL, 0, ORIGINAL),
    ],
)
def test_what_was_applied_in_turn(
    tmp_path: Path, arrays: list[Array], values: tuple[int | str, ...], order: tuple[int, int]
) -> None:
    """What a switch of the scheduler resets comes back with the last of them, too."""
    read_expire(arrays[0]).write_text("250\n")
    queue = scheduler(arrays[0]).parent / "nr_requests"
    queue.write_text("100\n")
    for number, value in zip(values[::2], values[1::2], strict=True):
        applied(arrays[int(number)], tmp_path / "state", str(value))
    for number in order:
        outcome = undone(arrays[number], tmp_path / "state")
        assert outcome.complete
        assert outcome.foreign == []
    assert sysfs.value(scheduler(arrays[0])) == ORIGINAL
    assert sysfs.value(read_expire(arrays[0])) == "250"
    assert sysfs.value(queue) == "100"


def test_one_that_is_undone_leaves_the_disks_to_the_other(
    tmp_path: Path, arrays: list[Array]
) -> None:
    for number, value in ((0, "bfq"), (1, "kyber"), (0, "none")):
        applied(arrays[number], tmp_path / "state", value)
    undone(arrays[0], tmp_path / "state")
    assert sysfs.value(scheduler(arrays[0])) == "kyber"


def test_what_somebody_has_set_between_is_the_original_since(
    tmp_path: Path, arrays: list[Array]
) -> None:
    applied(arrays[0], tmp_path / "state", "bfq")
    fake_sysfs.write(scheduler(arrays[0]), "none")
    applied(arrays[1], tmp_path / "state", "kyber")
    undone(arrays[0], tmp_path / "state")
    undone(arrays[1], tmp_path / "state")
    assert sysfs.value(scheduler(arrays[0])) == "none"


def test_of_what_a_profile_did_not_change_the_newest_is_the_original(
    tmp_path: Path, arrays: list[Array]
) -> None:
    """All that a profile could change is recorded, long before another one does so."""
    cache, speed = arrays[0].md / "stripe_cache_size", arrays[0].md / "sync_speed_max"
    for path, text, by_hand in ((cache, "512", ""), (speed, "300000", "250000")):
        if by_hand:
            path.write_text(f"{by_hand} (local)\n")
        applied(arrays[0], tmp_path / "state", text, path)
    undone(arrays[0], tmp_path / "state")
    assert sysfs.value(cache) == "256"
    assert sysfs.value(speed) == "250000"


def test_what_is_persisted_has_the_originals_of_both(
    tmp_path: Path, arrays: list[Array], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one's profile is replaced after the second one's was persisted over it."""
    monkeypatch.setattr(persist, "list_arrays", lambda _root: arrays)
    for number, before, value in ((0, ORIGINAL, "bfq"), (1, "bfq", "kyber"), (0, ORIGINAL, "none")):
        made = profile({"scheduler": value}).model_copy(update={"before": {"scheduler": before}})
        persist.persist(made, arrays[number], tmp_path / "state", lambda _text: None)
    for array in arrays:
        kept = load_profile(profile_path(array.uuid, tmp_path))
        assert kept.before == {"scheduler": ORIGINAL}


def test_what_is_persisted(tmp_path: Path, arrays: list[Array]) -> None:
    for number, (before, value) in enumerate(((ORIGINAL, "none"), ("none", "bfq"))):
        uuid = arrays[number].uuid
        made = profile({"scheduler": value}).model_copy(update={"before": {"scheduler": before}})
        path = profile_path(uuid, tmp_path)
        save_profile(made, path)
        os.utime(path, (number, number))
        rule = rule_path(uuid, tmp_path)
        rule.parent.mkdir(parents=True, exist_ok=True)
        rule.touch()
    fake_sysfs.write(scheduler(arrays[0]), "bfq")
    for disk in arrays[0].disks:
        fake_sysfs.write(tmp_path / "sys/block" / disk / "queue/scheduler", "bfq")
    found, _ = before_persisted(arrays, tmp_path / "state")
    assert found[arrays[1].device].files == dict.fromkeys(schedulers(arrays[1]), ORIGINAL)


@pytest.mark.parametrize("order", [("md0", "md1"), ("md1", "md0")])
@pytest.mark.parametrize("first", [(ORIGINAL,) * 5, ("none", "none", *(ORIGINAL,) * 3)])
@pytest.mark.parametrize("rebooted", [False, True])
def test_arrays_that_share_some_of_their_disks(
    tmp_path: Path,
    arrays: list[Array],
    monkeypatch: pytest.MonkeyPatch,
    order: Sequence[str],
    first: Sequence[str],
    rebooted: bool,
) -> None:
    """As /boot on two disks, and the data on all."""
    shrink(arrays[1], 2)
    monkeypatch.setattr(persist, "list_arrays", lambda _root: list_arrays(tmp_path))
    for path, text in zip(schedulers(arrays[0]), first, strict=True):
        fake_sysfs.write(path, text)
    by_name_ = {array.name: array for array in list_arrays(tmp_path)}
    for name, value in zip(order, ("bfq", "kyber"), strict=True):
        persisted_for(by_name_[name], value, tmp_path / "state")
    if rebooted:
        (tmp_path / BOOT_ID.relative_to("/")).write_text("c\n")
    found, unknown = before_persisted(list_arrays(tmp_path), tmp_path / "state")
    assert not unknown
    for before in found.values():
        assert before.theirs == ()
        for path, text in before.files.items():
            fake_sysfs.write(path, text)
    assert [sysfs.value(path) for path in schedulers(arrays[0])] == list(first)


def shrink(array: Array, disks: int) -> None:
    for member in array.members[disks:]:
        shutil.rmtree(array.md / f"dev-{member.name}")
    (array.md / "raid_disks").write_text(f"{disks}\n")


def persisted_for(array: Array, value: str, state: Path) -> None:
    """As `autotune apply --persist` leaves it."""
    found = read_setting(array, [by_name("scheduler")])
    known = known_here(profile({"scheduler": value}), array, found, state)
    for path in schedulers(array):
        fake_sysfs.write(path, value)
    persist.persist(known, array, state, lambda _text: None)


@pytest.mark.parametrize("names_change", [False, True])
def test_a_disk_that_has_left_keeps_no_other_from_going_back(
    tmp_path: Path, arrays: list[Array], names_change: bool
) -> None:
    first = ("none", *(ORIGINAL,) * 4)
    ids = ["first", "second", "third", "fourth", "fifth"]
    for path, text, wwid in zip(schedulers(arrays[0]), first, ids, strict=True):
        fake_sysfs.write(path, text)
        (path.parents[1] / "wwid").write_text(f"{wwid}\n")
    array = list_arrays(tmp_path)[0]
    before = {"scheduler": ",".join(first)}
    made = with_before(profile({"scheduler": "bfq"}), array, before, ())
    save_profile(made, profile_path(array.uuid, tmp_path))
    shrink(array, 4)
    for path in schedulers(array)[:4]:
        fake_sysfs.write(path, "bfq")
    if names_change:
        for path, wwid in zip(schedulers(array), reversed(ids[:4]), strict=False):
            (path.parents[1] / "wwid").write_text(f"{wwid}\n")
    found, _ = before_persisted(list_arrays(tmp_path)[:1], tmp_path / "state")
    texts = [found[array.device].files[path] for path in schedulers(array)[:4]]
    assert texts == (list(reversed(first[:4])) if names_change else list(first[:4]))
    # The one that has left goes back too, as far as the profile has set it.
    left = schedulers(arrays[0])[4]
    assert left not in found[array.device].files
    fake_sysfs.write(left, "bfq")
    found, _ = before_persisted(list_arrays(tmp_path)[:1], tmp_path / "state")
    assert found[array.device].files[left] == ORIGINAL


@pytest.mark.parametrize(("reads", "before"), [("none", "none"), ("kyber", ORIGINAL)])
def test_a_disk_that_has_joined_keeps_what_it_had(
    tmp_path: Path, arrays: list[Array], reads: str, before: str
) -> None:
    """But for what udev has set there."""
    *first, last = schedulers(arrays[0])
    shrunk = tmp_path / "sys/block/md1"
    made = profile({"scheduler": "kyber"}).model_copy(update={"before": {"scheduler": ORIGINAL}})
    for number, path in enumerate(schedulers(arrays[0])):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
    shrink(arrays[1], 4)
    array = next(array for array in list_arrays(tmp_path) if array.block == shrunk)
    save_profile(with_before(made, array, made.before, ()), profile_path(array.uuid, tmp_path))
    for path in first:
        fake_sysfs.write(path, "kyber")
    fake_sysfs.write(last, reads)
    whole = profile_path(arrays[0].uuid, tmp_path)
    profile_path(array.uuid, tmp_path).rename(whole)
    array = list_arrays(tmp_path)[0]
    now = read_setting(array, [by_name("scheduler")])
    known = known_here(profile({"scheduler": "bfq"}), array, now, tmp_path / "state")
    expected = ORIGINAL if before == ORIGINAL else ",".join([ORIGINAL] * 4 + [before])
    assert known.before == {"scheduler": expected}


def test_what_another_array_has_persisted_otherwise_is_told(
    tmp_path: Path, arrays: list[Array]
) -> None:
    persisted_for(arrays[1], "kyber", tmp_path / "state")
    for value, told in (("kyber", 0), ("bfq", 1)):
        said: list[str] = []
        for path in schedulers(arrays[0]):
            fake_sysfs.write(path, value)
        persist.persist(profile({"scheduler": value}), arrays[0], tmp_path / "state", said.append)
        assert len([text for text in said if "sets scheduler otherwise" in text]) == told


@pytest.mark.parametrize("own", [True, False])
def test_a_speed_that_followed_the_sysctl_does_so_again_and_no_other(
    tmp_path: Path, arrays: list[Array], own: bool
) -> None:
    """Whatever the sysctl says by then, and though the array's own value is the kernel's."""
    array, file = arrays[0], arrays[0].md / "sync_speed_min"
    sysctl = tmp_path / "proc/sys/dev/raid/speed_limit_min"
    sysctl.write_text("50000\n")
    at_first = "1000 (local)" if own else "50000 (system)"
    file.write_text(f"{at_first}\n")
    tuned: dict[str, str | int] = {"sync_speed_min": 9000}
    for boot, values in ((1, tuned), (2, {"sync_speed_min": 7000})):
        applied_for_real(array, values, tmp_path / "state")
        made = load_profile(applied_path(tmp_path / "state", array.uuid).with_suffix(".json"))
        persist.persist(made, array, tmp_path / "state", lambda _text: None)
        (tmp_path / BOOT_ID.relative_to("/")).write_text(f"{boot}\n")
        # As udev has set it since.
        file.write_text(f"{values['sync_speed_min']} (local)\n")
        sysctl.write_text("20000\n")
        found = before_persisted(arrays[:1], tmp_path / "state")[0][array.device]
        assert found.setting == {"sync_speed_min": 1000 if own else 50000}
        assert found.system == (() if own else ("sync_speed_min",))


def test_what_udev_has_set_for_another_array_stays_until_all_goes_back(
    tmp_path: Path, arrays: list[Array]
) -> None:
    persisted_for(arrays[1], "kyber", tmp_path / "state")
    for path in schedulers(arrays[0]):
        (path.parent / "nr_requests").write_text("100\n")
    for kept in (True, False):
        (tmp_path / BOOT_ID.relative_to("/")).write_text(f"{kept}\n")
        applied_for_real(arrays[0], {"scheduler": "bfq"}, tmp_path / "state")
        others = persist.set_for_others(arrays[0]) if kept else {}
        journal = Journal.claimed(applied_path(tmp_path / "state", arrays[0].uuid))
        assert restore(journal, tmp_path, kept=others).complete
        journal.release()
        found = {sysfs.value(path) for path in schedulers(arrays[0])}
        assert found == ({"kyber"} if kept else {ORIGINAL})
        if kept:
            assert sysfs.value(schedulers(arrays[0])[0].with_name("nr_requests")) == "100"


def test_what_is_applied_has_the_originals_of_both(tmp_path: Path, arrays: list[Array]) -> None:
    """Else it would be persisted with what the other's profile had set."""
    made = profile({"scheduler": "none"}).model_copy(update={"before": {"scheduler": ORIGINAL}})
    path = profile_path(arrays[0].uuid, tmp_path)
    save_profile(made, path)
    new = profile({"scheduler": "bfq"})
    found = known_here(new, arrays[1], {"scheduler": "none"}, tmp_path / "state")
    assert found.before == {"scheduler": ORIGINAL}


def test_what_anothers_profile_covers_goes_back_with_it(
    tmp_path: Path, arrays: list[Array]
) -> None:
    """Persisted for one array, and set over by udev's order or by hand for the other."""
    state = tmp_path / "state"
    for array, value, before in zip(arrays, ("bfq", "none"), (ORIGINAL, "bfq"), strict=True):
        made = profile({"scheduler": value}).model_copy(update={"before": {"scheduler": before}})
        save_profile(made, profile_path(array.uuid, tmp_path))
    for disk in arrays[0].disks:
        fake_sysfs.write(tmp_path / "sys/block" / disk / "queue/scheduler", "none")
    back = dict.fromkeys(schedulers(arrays[0]), ORIGINAL)
    assert before_persisted(arrays, state)[0][arrays[0].device].files == back
    # Alone, it is the other array's.
    assert not before_persisted(arrays[:1], state)[0][arrays[0].device]


def test_a_disk_that_somebody_has_set_keeps_no_other_from_going_back(
    tmp_path: Path, arrays: list[Array]
) -> None:
    made = profile({"scheduler": "kyber"}).model_copy(update={"before": {"scheduler": ORIGINAL}})
    save_profile(made, profile_path(arrays[0].uuid, tmp_path))
    theirs, *ours = schedulers(arrays[0])
    fake_sysfs.write(theirs, "bfq")
    for path in ours:
        fake_sysfs.write(path, "kyber")
    found = before_persisted(arrays, tmp_path / "state")[0][arrays[0].device]
    assert found.files == dict.fromkeys(ours, ORIGINAL)
    assert found.theirs == (f"{theirs} reads bfq, which autotune did not write",)


@pytest.mark.parametrize("text", ["", '{"schema_version": 99}'])
def test_a_persisted_profile_that_cannot_be_read_keeps_only_its_own_array(
    tmp_path: Path, arrays: list[Array], text: str
) -> None:
    made = profile({"stripe_cache_size": 512})
    made = made.model_copy(update={"before": {"stripe_cache_size": 256}})
    save_profile(made, profile_path(arrays[1].uuid, tmp_path))
    (arrays[1].md / "stripe_cache_size").write_text("512\n")
    profile_path(arrays[0].uuid, tmp_path).write_text(text)
    found, (why,) = before_persisted(arrays, tmp_path / "state")
    assert why.startswith("What /dev/md0 had before its persisted profile is not known: ")
    assert found[arrays[1].device].setting == {"stripe_cache_size": 256}
    assert arrays[0].device not in found


def test_what_stays_on_the_disks_of_an_array_that_does_not_run_is_told(
    tmp_path: Path, arrays: list[Array]
) -> None:
    made = profile({"scheduler": "kyber", "stripe_cache_size": 512})
    before = {"scheduler": ORIGINAL, "stripe_cache_size": 256}
    save_profile(made.model_copy(update={"before": before}), profile_path(arrays[0].uuid, tmp_path))
    assert persist.left_on_disks(arrays[0].uuid, tmp_path).endswith(f"had scheduler {ORIGINAL}.")
    assert persist.left_on_disks("b" * 32, tmp_path) == ""


def test_a_record_of_an_array_that_does_not_run_is_of_its_disks(
    tmp_path: Path, arrays: list[Array]
) -> None:
    applied(arrays[0], tmp_path / "state", "bfq")
    path = applied_path(tmp_path / "state", arrays[0].uuid)
    stopped = stopped_array(path)
    assert stopped is not None
    assert stopped.leaves == set(arrays[0].disks)
    shutil.rmtree(arrays[0].block)
    state = tmp_path / "state"
    assert left_on_disks(state, [arrays[0].uuid], tmp_path) == []
    assert "/dev/md0 does not run" in left_on_disks(state, [], tmp_path)[0]
    assert undone(arrays[0], tmp_path / "state").complete
    assert sysfs.value(scheduler(arrays[0])) == ORIGINAL


@pytest.mark.parametrize("started_anew", [False, True])
def test_what_is_applied_over_a_persisted_profile_knows_what_was_before_both(
    tmp_path: Path, arrays: list[Array], started_anew: bool
) -> None:
    """Its own originals are what udev has set, at a boot or when the array was assembled."""
    array, cache = arrays[0], arrays[0].md / "stripe_cache_size"
    if started_anew:
        applied(array, tmp_path / "state", "1024", cache)
        elsewhere = array.block.with_name("elsewhere")
        shutil.copytree(array.block, elsewhere, symlinks=True)
        shutil.rmtree(array.block)
        elsewhere.rename(array.block)
    before = {"scheduler": ORIGINAL, "stripe_cache_size": 256}
    made = profile({"scheduler": "kyber", "stripe_cache_size": 512})
    persisted = profile_path(array.uuid, tmp_path)
    save_profile(made.model_copy(update={"before": before}), persisted)
    cache.write_text("512\n")
    for path in schedulers(array):
        fake_sysfs.write(path, "kyber")
    applied_for_real(array, {"scheduler": "bfq", "stripe_cache_size": 384}, tmp_path / "state")
    assert sysfs.value(cache) == "384"
    persisted.unlink()
    assert undone(array, tmp_path / "state").foreign == []
    assert sysfs.value(cache) == "256"
    assert {sysfs.value(path) for path in schedulers(array)} == {ORIGINAL}


def applied_for_real(array: Array, values: Mapping[str, str | int], state: Path) -> None:
    array, knobs = array.now(), tuple(map(by_name, values))
    paths = journaled_paths(array, for_array(array, ALL))
    path, found = journal_path(state, array.uuid), read_setting(array, knobs)
    journal = new_journal(path, array.uuid, array.device, paths, array.root)
    apply(array, knobs, dict(values), journal)
    known = known_here(profile(dict(values)), array, found, state)
    keep_applied(known, array, journal, state)
    journal.release()


VALUES = (
    {"scheduler": ORIGINAL},
    {"scheduler": "bfq"},
    {"scheduler": "kyber"},
    {"nr_requests": 32},
    {"read_ahead_kb": 1024},
)
STEPS = [(number, values) for number in (0, 1) for values in VALUES]
SEQUENCES = list(itertools.product(STEPS, repeat=3))


def go_through(root: Path, sequence: Sequence[tuple[int, Mapping[str, str | int]]]) -> None:
    """Apply profiles in turn, undo both in either order: all of each disk is as it was, and nobody
    else is said to have set anything."""
    for order in ((0, 1), (1, 0)):
        arrays = list_arrays(root)
        before = queues(arrays[0])
        for number, values in sequence:
            applied_for_real(arrays[number], values, root / "state")
        for number in order:
            if applied_path(root / "state", arrays[number].uuid).exists():
                assert undone(arrays[number], root / "state").foreign == [], sequence
        assert queues(arrays[0]) == before, (sequence, order)


def queues(array: Array) -> dict[str, str]:
    """All files of the disks' queues."""
    files = [path for each in schedulers(array) for path in each.parent.rglob("*")]
    return {str(path): path.read_text() for path in files if path.is_file()}


@pytest.fixture
def tuned_by_hand(arrays: list[Array], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)
    for path in schedulers(arrays[0]):
        fake_sysfs.write(path.parent / "nr_requests", "100")
        (path.parent / "iosched/read_expire").write_text("250\n")
    return tmp_path


def test_some_profiles_in_turn(tuned_by_hand: Path) -> None:
    for sequence in random.Random(1).sample(SEQUENCES, 12):
        go_through(tuned_by_hand, sequence)


@pytest.mark.slow
def test_all_profiles_in_turn(tuned_by_hand: Path) -> None:
    for sequence in SEQUENCES:
        go_through(tuned_by_hand, sequence)
