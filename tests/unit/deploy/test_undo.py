"""What udev has set for a persisted profile goes back as what was applied does."""

import functools
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import (
    ORIGINAL,
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

from autotune.deploy import persist, persisted
from autotune.deploy.apply import known_here
from autotune.deploy.in_force import active, refuse_damaged
from autotune.deploy.persisted import profile_path
from autotune.deploy.undo import record_persisted, record_stopped, stopped
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.knobs import by_name, read_setting
from autotune.knobs.before import with_before
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import save_profile
from autotune.problem.setting import Setting
from autotune.safety import deferred_restore, locks
from autotune.safety.applied import is_applied, left_on_disks, stopped_array
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_path, journal_path, waiting_path
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array, find_array, list_arrays


def cache(array: Array) -> Path:
    return array.md / "stripe_cache_size"


def as_udev_sets_it(array: Array) -> Path:
    """A profile that was persisted before this boot; its file."""
    values = {"scheduler": "kyber", "stripe_cache_size": 512}
    path = persisted_before(array, values, {"scheduler": ORIGINAL, "stripe_cache_size": 256})
    cache(array).write_text("512\n")
    set_all(schedulers(array), "kyber")
    return path


def test_what_udev_has_set_goes_back(tmp_path: Path, array: Array) -> None:
    as_udev_sets_it(array)
    assert record_persisted(array, tmp_path) == []
    assert [each.how for each in active(array, tmp_path)] == ["applied", "persisted"]
    # Nothing more to record.
    record = applied_path(tmp_path, array.uuid).read_bytes()
    assert record_persisted(array, tmp_path) == []
    assert applied_path(tmp_path, array.uuid).read_bytes() == record
    assert undo(array, tmp_path).foreign == []
    assert sysfs.value(cache(array)) == "256"
    assert {sysfs.value(path) for path in schedulers(array)} == {ORIGINAL}


def test_where_udev_has_set_nothing_nothing_is_recorded(tmp_path: Path, array: Array) -> None:
    assert record_persisted(array, tmp_path) == []
    path = as_udev_sets_it(array)
    cache(array).write_text("256\n")
    set_all(schedulers(array), ORIGINAL)
    assert record_persisted(array, tmp_path) == []
    assert path.exists()
    assert not is_applied(array, tmp_path)


def test_what_somebody_has_set_since_stays_and_keeps_nothing_else(
    tmp_path: Path, array: Array
) -> None:
    as_udev_sets_it(array)
    theirs, *ours = schedulers(array)
    fake_sysfs.write(theirs, "bfq")
    said = [f"{theirs} reads bfq, which was set after that"]
    assert record_persisted(array, tmp_path) == said
    undo(array, tmp_path)
    assert sysfs.value(theirs) == "bfq"
    assert {sysfs.value(path) for path in ours} == {ORIGINAL}


@pytest.mark.parametrize("started_anew", [False, True])
def test_what_is_applied_over_it_knows_what_was_before_both(
    tmp_path: Path, array: Array, started_anew: bool
) -> None:
    """Its own originals are what udev has set, at a boot or when the array was assembled."""
    if started_anew:
        apply_values(array, {"stripe_cache_size": 1024}, tmp_path)
        elsewhere = array.block.with_name("elsewhere")
        shutil.copytree(array.block, elsewhere, symlinks=True)
        shutil.rmtree(array.block)
        elsewhere.rename(array.block)
    persisted = as_udev_sets_it(array)
    known = apply_values(array, {"scheduler": "bfq", "stripe_cache_size": 384}, tmp_path)
    assert known.before == {"scheduler": ORIGINAL, "stripe_cache_size": 256}
    assert sysfs.value(cache(array)) == "384"
    persisted.unlink()
    assert undo(array, tmp_path).foreign == []
    assert sysfs.value(cache(array)) == "256"
    assert {sysfs.value(path) for path in schedulers(array)} == {ORIGINAL}


@pytest.mark.parametrize("own", [True, False])
def test_a_speed_that_followed_the_sysctl_does_so_again_and_no_other(
    tmp_path: Path, array: Array, own: bool
) -> None:
    """Whatever the sysctl says by then, and though the array's own value is the kernel's."""
    file, sysctl = array.md / "sync_speed_min", tmp_path / "proc/sys/dev/raid/speed_limit_min"
    sysctl.write_text("50000\n")
    at_first = "1000 (local)" if own else "50000 (system)"
    file.write_text(f"{at_first}\n")
    for boot, speed in (("1", 9000), ("2", 7000)):
        persist_values(array, {"sync_speed_min": speed}, tmp_path)
        start(tmp_path, boot)
        # As udev has set it since.
        file.write_text(f"{speed} (local)\n")
        sysctl.write_text("20000\n")
    assert record_persisted(array, tmp_path) == []
    undo(array, tmp_path)
    assert sysfs.original(file) == ("1000" if own else "system")


@pytest.mark.parametrize("text", ["", '{"schema_version": 99}'])
def test_a_profile_that_cannot_be_read_is_said_to_be_so(
    tmp_path: Path, array: Array, text: str
) -> None:
    profile_path(array.uuid, tmp_path).parent.mkdir(parents=True)
    profile_path(array.uuid, tmp_path).write_text(text)
    with pytest.raises(UsageError):
        record_persisted(array, tmp_path)


def test_what_cannot_be_recorded_changes_nothing(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that is full."""

    def full(*_: object) -> None:
        raise AutotuneError("No space left on device.")

    as_udev_sets_it(array)
    monkeypatch.setattr(Journal, "keep", full)
    with pytest.raises(AutotuneError, match="No space"):
        record_persisted(array, tmp_path)
    assert not journal_path(tmp_path, array.uuid).exists()
    assert not is_applied(array, tmp_path)
    assert sysfs.value(cache(array)) == "512"


@pytest.mark.parametrize("names_change", [False, True])
def test_a_disk_that_has_left_keeps_no_other_from_going_back(
    tmp_path: Path, array: Array, names_change: bool
) -> None:
    first = ("none", *(ORIGINAL,) * 4)
    files = schedulers(array)
    ids = ["first", "second", "third", "fourth", "fifth"]
    for path, wwid in zip(files, ids, strict=True):
        (path.parents[1] / "wwid").write_text(f"{wwid}\n")
    array = find_array("md0", tmp_path)
    persisted_before(array, {"scheduler": "bfq"}, {"scheduler": ",".join(first)})
    set_all(files, "bfq")
    shrink(array, 4)
    if names_change:
        for path, wwid in zip(files[:4], reversed(ids[:4]), strict=True):
            (path.parents[1] / "wwid").write_text(f"{wwid}\n")
    array = find_array("md0", tmp_path)
    record_persisted(array, tmp_path)
    undo(array, tmp_path)
    back = list(reversed(first[:4])) if names_change else list(first[:4])
    # The one that has left goes back too.
    assert [sysfs.value(path) for path in files] == [*back, ORIGINAL]


@pytest.mark.parametrize(
    ("reads", "seen", "before"),
    [
        ("none", "", "none"),
        ("kyber", "", ORIGINAL),
        ("kyber", "_none_ mq-deadline kyber bfq", "none"),
        ("kyber", "none mq-deadline _kyber_ bfq", "kyber"),
    ],
)
def test_a_disk_that_has_joined_keeps_what_it_had(
    tmp_path: Path, array: Array, reads: str, seen: str, before: str
) -> None:
    """But for what udev has set there. What it saw there first it remembers."""
    *first, last = schedulers(array)
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
    whole = find_array("md0", tmp_path)
    moved = tmp_path / "member"
    shutil.move(array.md / f"dev-{array.members[-1].name}", moved)
    smaller = find_array("md0", tmp_path)
    made = profile({"scheduler": "kyber"}).model_copy(update={"before": {"scheduler": ORIGINAL}})
    made = with_before(made, smaller, made.before, ())
    save_profile(made, profile_path(array.uuid, tmp_path))
    shutil.move(moved, array.md / f"dev-{array.members[-1].name}")
    (last.parents[1] / "dev").write_text("7:4\n")
    known = tmp_path / "run/udev/data/b7:4"
    known.parent.mkdir(parents=True)
    known.write_text(f"E:AUTOTUNE_HAD_SCHEDULER={seen}\n")
    set_all(first, "kyber")
    fake_sysfs.write(last, reads)
    now = read_setting(whole, [by_name("scheduler")])
    made = known_here(profile({"scheduler": "bfq"}), whole, now, tmp_path / "state")
    expected = ORIGINAL if before == ORIGINAL else ",".join([ORIGINAL] * 4 + [before])
    assert made.before == {"scheduler": expected}


def test_queues_that_differed_are_known_disk_by_disk(tmp_path: Path, array: Array) -> None:
    """A switch of their schedulers makes them alike, so that a profile can set them."""
    set_all(schedulers(array)[:2], "none")
    persist_values(array, {"scheduler": "bfq"}, tmp_path)
    start(tmp_path, "later")
    set_all(schedulers(array), "kyber")
    set_all(schedulers(array), "bfq")
    made = apply_values(array, {"nr_requests": 32}, tmp_path)
    assert made.before["nr_requests"] == "64,64,128,128,128"
    path = tmp_path / "profile.json"
    save_profile(made, path)
    assert load_profile(path) == made
    undo(array, tmp_path)
    lengths = [sysfs.value(path.with_name("nr_requests")) for path in schedulers(array)]
    assert lengths == ["64", "64", "128", "128", "128"]


def test_of_what_a_profile_did_not_change_the_newest_is_the_original(
    tmp_path: Path, array: Array
) -> None:
    """All that a profile could change is recorded, long before another one does so."""
    speed = array.md / "sync_speed_max"
    apply_values(array, {"stripe_cache_size": 512}, tmp_path)
    speed.write_text("250000 (local)\n")
    apply_values(array, {"sync_speed_max": 300_000}, tmp_path)
    undo(array, tmp_path)
    assert sysfs.value(cache(array)) == "256"
    assert sysfs.value(speed) == "250000"


def named(array: Array) -> Array:
    """Each of its disks says what it is."""
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"disk-{number}\n")
    return find_array("md0", array.root)


def test_disks_of_an_array_that_does_not_run_get_back_what_they_had(
    tmp_path: Path, array: Array
) -> None:
    """Those of which somebody else has set nothing since, whatever they are called by now."""
    array = named(array)
    as_udev_sets_it(array)
    theirs, *ours = schedulers(array)
    fake_sysfs.write(theirs, "bfq")
    shutil.rmtree(array.block)
    gone = stopped(array.uuid, tmp_path)
    said = [f"{theirs} reads bfq, which was set after that"]
    assert record_stopped(gone, tmp_path) == said
    assert persisted.left_on_disks(array.uuid, tmp_path) == ""
    persist.unpersist(array.uuid, tmp_path)
    journal = Journal.claimed(applied_path(tmp_path, array.uuid))
    assert restore(journal, tmp_path).complete
    assert sysfs.value(theirs) == "bfq"
    assert {sysfs.value(path) for path in ours} == {ORIGINAL}


@pytest.mark.parametrize("partition", [False, True])
def test_udev_knows_the_disks_that_do_not_say_what_they_are(
    tmp_path: Path, array: Array, partition: bool
) -> None:
    as_udev_sets_it(array)
    dashed = "-".join(array.uuid[n : n + 8] for n in range(0, 32, 8))
    for number, disk in enumerate(array.disks):
        folder = tmp_path / "sys/block" / disk
        if partition:
            folder /= f"{disk}1"
            folder.mkdir()
            (folder / "partition").write_text("1\n")
            (tmp_path / "sys/class/block" / f"{disk}1").symlink_to(folder)
        (folder / "dev").write_text(f"7:{number}\n")
        known = tmp_path / f"run/udev/data/b7:{number}"
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(f"E:AUTOTUNE_MEMBER=1\nE:ID_FS_UUID={dashed}\n")
    files = schedulers(array)
    shutil.rmtree(array.block)
    assert persisted.left_on_disks(array.uuid, tmp_path) == ""
    assert record_stopped(stopped(array.uuid, tmp_path), tmp_path) == []
    persist.unpersist(array.uuid, tmp_path)
    journal = Journal.claimed(applied_path(tmp_path, array.uuid))
    assert restore(journal, tmp_path).complete
    assert {sysfs.value(path) for path in files} == {ORIGINAL}


def test_what_a_switch_at_the_boot_resets_comes_back(tmp_path: Path, array: Array) -> None:
    """What an administrator's own rule sets at each boot, before ours."""
    array = named(array)
    files = schedulers(array)

    def by_their_rule() -> None:
        for path in files:
            fake_sysfs.write(path, ORIGINAL)
            fake_sysfs.write(path.with_name("nr_requests"), "100")
            (path.parent / "iosched/read_expire").write_text("250\n")

    by_their_rule()
    persist_values(array, {"scheduler": "kyber"}, tmp_path)
    rule = persisted.rule_path(array.uuid, tmp_path).read_text()
    # It was proven with this length, too.
    assert 'ATTR{queue/nr_requests}="100"' in rule
    assert load_profile(profile_path(array.uuid, tmp_path)).knobs == {"scheduler": "kyber"}
    start(tmp_path, "later")
    set_all(files, "none")
    by_their_rule()
    set_all(files, "kyber")
    for path in files:
        fake_sysfs.write(path.with_name("nr_requests"), "100")
    # One that somebody has set since.
    theirs = files[0].with_name("nr_requests")
    fake_sysfs.write(theirs, "77")
    record_persisted(array.now(), tmp_path)
    undo(array, tmp_path)
    for path in files:
        assert sysfs.value(path) == ORIGINAL
        assert sysfs.value(path.parent / "iosched/read_expire") == "250"
    lengths = [sysfs.value(path.with_name("nr_requests")) for path in files]
    assert lengths[1:] == ["100"] * 4


@pytest.mark.parametrize("theirs", [None, "100"])
def test_a_length_that_another_profile_has_set_is_not_persisted_with_a_scheduler(
    tmp_path: Path, array: Array, theirs: str | None
) -> None:
    """It ends with the reboot; what was there before it comes back at each."""
    files = schedulers(array)
    lengths = [path.with_name("nr_requests") for path in files]
    for path in lengths if theirs else ():
        fake_sysfs.write(path, theirs or "")
    before = [sysfs.value(path) for path in lengths]
    apply_values(array, {"nr_requests": 40}, tmp_path)
    persist_values(array, {"scheduler": "kyber"}, tmp_path)
    rule = persisted.rule_path(array.uuid, tmp_path).read_text()
    assert ('ATTR{queue/nr_requests}="100"' in rule) == (theirs is not None)
    assert '"40"' not in rule
    undo(array, tmp_path)
    assert [sysfs.value(path) for path in lengths] == before


@pytest.mark.parametrize("mixed", [False, True])
def test_a_setting_of_a_scheduler_that_was_not_in_force_was_the_kernels(
    tmp_path: Path, array: Array, mixed: bool
) -> None:
    array = named(array)
    if mixed:
        set_all(schedulers(array)[:2], "none")
    before = [sysfs.value(path) for path in schedulers(array)]
    values: dict[str, str | int] = {"scheduler": "bfq", "low_latency": 0}
    if mixed:
        values = {"scheduler": "mq-deadline", "fifo_batch": 4}
    persist_values(array, values, tmp_path)
    kept = load_profile(profile_path(array.uuid, tmp_path))
    own = list(values)[1]
    assert kept.before[own] == by_name(own).default(array)
    start(tmp_path, "later")
    record_persisted(array.now(), tmp_path)
    assert undo(array, tmp_path).foreign == []
    assert [sysfs.value(path) for path in schedulers(array)] == before


def test_a_speed_that_follows_the_sysctl_again_is_nobodys(tmp_path: Path, array: Array) -> None:
    persist_values(array, {"sync_speed_min": 9000}, tmp_path)
    undo(array, tmp_path)
    assert record_persisted(array, tmp_path) == []


def test_a_disk_that_joins_has_what_another_arrays_record_knows_of_it(
    tmp_path: Path, array: Array
) -> None:
    array = named(array)
    last = array.members[-1]
    shutil.copytree(array.block, array.block.with_name("md1"), symlinks=True)
    (array.block.with_name("md1") / "md/uuid").write_text("b" * 32 + "\n")
    moved = tmp_path / "member"
    shutil.move(array.md / f"dev-{last.name}", moved)
    smaller, other = list_arrays(tmp_path)
    set_all(schedulers(smaller), "none")
    persist_values(smaller, {"scheduler": "kyber"}, tmp_path)
    for member in other.members[:-1]:
        shutil.rmtree(other.md / f"dev-{member.name}")
    other = list_arrays(tmp_path)[1]
    apply_values(other, {"scheduler": "bfq"}, tmp_path)
    shutil.move(moved, array.md / f"dev-{last.name}")
    (file,) = schedulers(other)
    # As udev does when it joins.
    fake_sysfs.write(file, "kyber")
    record_persisted(array.now(), tmp_path)
    undo(array, tmp_path)
    assert sysfs.value(file) == ORIGINAL


def test_what_waits_for_a_sync_goes_back_after_it(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To what was there before udev, too."""
    monkeypatch.setattr(deferred_restore, "start", lambda _path: None)
    threads, action = array.md / "group_thread_cnt", array.md / "sync_action"
    persisted_before(array, {"group_thread_cnt": 1}, {"group_thread_cnt": 0})
    threads.write_text("1\n")
    record_persisted(array, tmp_path)
    action.write_text("check\n")
    assert undo(array, tmp_path).waiting
    assert sysfs.value(threads) == "1"
    action.write_text("idle\n")
    waiting = waiting_path(journal_path(tmp_path, array.uuid))
    _, outcome = deferred_restore.put_back(waiting, tmp_path)
    assert outcome.complete
    assert sysfs.value(threads) == "0"
    assert not waiting.exists()


def test_what_was_there_before_goes_back_be_it_out_of_our_own_range(
    tmp_path: Path, array: Array
) -> None:
    """And be it that a disk has joined since which could not have it."""
    array = named(array)
    limits = [path.with_name("max_sectors_kb") for path in schedulers(array)]
    before = {"sync_speed_max": 4_294_967_295, "max_sectors_kb": 9_999_999}
    persisted_before(array, {"sync_speed_max": 300_000, "max_sectors_kb": 2048}, before)
    (array.md / "sync_speed_max").write_text("300000 (local)\n")
    set_all(limits, "2048")
    limits[0].with_name("max_hw_sectors_kb").write_text("1024\n")
    record_persisted(array, tmp_path)
    undo(array, tmp_path)
    assert sysfs.value(array.md / "sync_speed_max") == "4294967295"
    assert {sysfs.value(path) for path in limits} == {"9999999"}


def test_a_scheduler_that_is_back_already_leaves_no_setting_of_its_own(
    tmp_path: Path, array: Array
) -> None:
    own = schedulers(array)[0].parent / "iosched/read_expire"
    own.write_text("300\n")
    persist_values(array, {"scheduler": "kyber"}, tmp_path)
    start(tmp_path, "later")
    apply_values(array, {"scheduler": ORIGINAL, "read_expire": 250}, tmp_path)
    assert sysfs.value(own) == "250"
    undo(array, tmp_path)
    assert sysfs.value(own) == "300"
    others = [path.parent / "iosched/read_expire" for path in schedulers(array)[1:]]
    assert {sysfs.value(path) for path in others} == {"500"}


def test_a_damaged_record_is_never_taken_for_none(tmp_path: Path, array: Array) -> None:
    apply_values(array, {"scheduler": "bfq"}, tmp_path)
    path = applied_path(tmp_path, array.uuid)
    path.write_text("garbage")
    assert is_applied(array, tmp_path)
    with pytest.raises(AutotuneError, match="is damaged, so what was there before the profile"):
        Journal.claimed(path)
    with pytest.raises(RefusalError, match="is damaged"):
        refuse_damaged(array, tmp_path)
    assert path.exists()


def test_files_that_are_only_called_alike_are_not_ours(tmp_path: Path, array: Array) -> None:
    as_udev_sets_it(array)
    folder = profile_path(array.uuid, tmp_path).parent
    (folder / "notes.json").write_text("{}")
    (folder / f"{array.uuid}-old.json").write_text("{}")
    rules = persisted.rule_path("mine", tmp_path)
    rules.parent.mkdir(parents=True)
    rules.touch()
    assert persisted.persisted_uuids(tmp_path) == [array.uuid]


def test_what_stays_on_disks_that_do_not_say_what_they_are_is_told(
    tmp_path: Path, array: Array
) -> None:
    as_udev_sets_it(array)
    assert persisted.left_on_disks(array.uuid, tmp_path).endswith(f"had scheduler {ORIGINAL}.")
    assert persisted.left_on_disks("b" * 32, tmp_path) == ""


def test_a_record_of_an_array_that_does_not_run_is_of_its_disks(
    tmp_path: Path, array: Array
) -> None:
    apply_values(array, {"scheduler": "bfq"}, tmp_path)
    found = stopped_array(applied_path(tmp_path, array.uuid))
    assert found is not None
    assert found.leaves == set(array.disks)
    files = schedulers(array)
    shutil.rmtree(array.block)
    assert list_arrays(tmp_path) == []
    assert left_on_disks(tmp_path, [array.uuid], tmp_path) == []
    assert "/dev/md0 does not run" in left_on_disks(tmp_path, [], tmp_path)[0]
    journal = Journal.claimed(applied_path(tmp_path, array.uuid))
    assert restore(journal, tmp_path).complete
    assert {sysfs.value(path) for path in files} == {ORIGINAL}


@pytest.mark.parametrize("theirs", ["80", "100"])
def test_a_length_that_was_set_by_hand_over_a_persisted_one_outlives_the_switch_back(
    tmp_path: Path, array: Array, theirs: str
) -> None:
    """Be it what was there before."""
    lengths = [path.with_name("nr_requests") for path in schedulers(array)]
    before = {"scheduler": ORIGINAL, "nr_requests": 100}
    persisted_before(array, {"scheduler": "kyber", "nr_requests": 60}, before)
    for path, length in zip(schedulers(array), lengths, strict=True):
        fake_sysfs.write(path, "kyber")
        fake_sysfs.write(length, "60")
    fake_sysfs.write(lengths[0], theirs)
    record_persisted(array, tmp_path)
    undo(array, tmp_path)
    assert {sysfs.value(path) for path in schedulers(array)} == {ORIGINAL}
    assert [sysfs.value(path) for path in lengths] == [theirs, *["100"] * (len(lengths) - 1)]


def test_what_another_command_has_replaced_or_put_back_is_not_persisted(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = functools.partial(locks.lock, folder=tmp_path / "locks")
    monkeypatch.setattr(persist, "lock", ours)
    first = apply_values(array, {"stripe_cache_size": 512}, tmp_path)
    second = apply_values(array, {"stripe_cache_size": 1024}, tmp_path)

    def persists(knobs: Setting) -> bool:
        return persist.persist_applied(knobs, array, tmp_path, lambda _text: None) is not None

    assert not persists(first.knobs)
    with ours(array), pytest.raises(RefusalError):
        persists(second.knobs)
    assert not profile_path(array.uuid, tmp_path).exists()
    assert persists(second.knobs)
    assert load_profile(profile_path(array.uuid, tmp_path)).before == {"stripe_cache_size": 256}
    undo(array, tmp_path)
    assert not persists(second.knobs)


def test_what_an_array_of_another_level_lacks_keeps_nothing_else_from_going_back(
    tmp_path: Path, array: Array
) -> None:
    """As after `mdadm --grow --level`, which keeps the UUID."""
    as_udev_sets_it(array)
    cache(array).unlink()
    array = array.now()
    assert record_persisted(array, tmp_path) == []
    undo(array, tmp_path)
    assert {sysfs.value(path) for path in schedulers(array)} == {ORIGINAL}


@pytest.mark.parametrize(("seen", "goes_back"), [("", "9000"), ("4000", "4000")])
def test_a_disk_that_has_joined_gets_no_throttling_of_the_others(
    tmp_path: Path, array: Array, seen: str, goes_back: str
) -> None:
    """A switch of the scheduler may reset it, and of that disk only udev knows what it had."""
    *_, last = schedulers(array)
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
        path.with_name("wbt_lat_usec").write_text("2000\n")
    moved = tmp_path / "member"
    shutil.move(array.md / f"dev-{array.members[-1].name}", moved)
    persist_values(find_array("md0", tmp_path), {"scheduler": "bfq"}, tmp_path)
    start(tmp_path, "later")
    shutil.move(moved, array.md / f"dev-{array.members[-1].name}")
    set_all(schedulers(array), "bfq")
    last.with_name("wbt_lat_usec").write_text("9000\n")
    (last.parents[1] / "dev").write_text("7:4\n")
    known = tmp_path / "run/udev/data/b7:4"
    known.parent.mkdir(parents=True)
    had = f"E:AUTOTUNE_HAD_WBT_LAT_USEC={seen}\nE:AUTOTUNE_HAD_READ_EXPIRE=770\n" if seen else ""
    known.write_text(f"E:AUTOTUNE_HAD_SCHEDULER=_{ORIGINAL}_ none\n{had}")
    record_persisted(find_array("md0", tmp_path), tmp_path)
    undo(find_array("md0", tmp_path), tmp_path)
    assert sysfs.value(last) == ORIGINAL
    assert sysfs.value(last.with_name("wbt_lat_usec")) == goes_back
    assert sysfs.value(last.parent / "iosched/read_expire") == ("770" if seen else "500")


def _udev_knows(array: Array, disk: Path, said: str, mark: bool = True) -> None:
    """What its database says of a disk, by its scheduler's file; `mark`: as of the array's."""
    name, root = disk.parents[1].name, array.root
    (disk.parents[1] / "dev").write_text("7:4\n")
    folder = root / "sys/class/block" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    if not folder.exists():
        folder.symlink_to(root / "sys/block" / name)
    known = root / "run/udev/data/b7:4"
    known.parent.mkdir(parents=True, exist_ok=True)
    marks = f"E:AUTOTUNE_MEMBER=1\nE:ID_FS_UUID={array.uuid}\n" if mark else ""
    known.write_text(marks + said)


def test_a_disk_that_has_joined_and_left_again_goes_back_as_udev_saw_it(
    tmp_path: Path, array: Array
) -> None:
    *_, last = schedulers(array)
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
    shutil.move(array.md / f"dev-{array.members[-1].name}", tmp_path / "member")
    smaller = find_array("md0", tmp_path)
    persist_values(smaller, {"scheduler": "kyber", "nr_requests": 48}, tmp_path)
    # Udev has set it when it joined; then it left.
    set_all([last], "kyber")
    last.with_name("nr_requests").write_text("48\n")
    _udev_knows(
        array, last, "E:AUTOTUNE_HAD_SCHEDULER=_none_ kyber\nE:AUTOTUNE_HAD_NR_REQUESTS=40\n"
    )
    assert record_persisted(smaller, tmp_path) == []
    undo(smaller, tmp_path)
    assert sysfs.value(last) == "none"
    assert sysfs.value(last.with_name("nr_requests")) == "40"


def test_the_record_knows_better_than_udev_what_a_disk_had_that_comes_back(
    tmp_path: Path, array: Array
) -> None:
    """Udev saw it under the profile before."""
    *_, last = schedulers(array)
    expire = last.parent / "iosched/read_expire"
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
        (path.parent / "iosched/read_expire").write_text("770\n")
    persist_values(array, {"scheduler": "mq-deadline", "read_expire": 250}, tmp_path)
    moved = tmp_path / "member"
    shutil.move(array.md / f"dev-{array.members[-1].name}", moved)
    persist_values(find_array("md0", tmp_path), {"scheduler": "bfq"}, tmp_path)
    shutil.move(moved, array.md / f"dev-{array.members[-1].name}")
    assert sysfs.value(expire) == "250"
    set_all([last], "bfq")
    said = "E:AUTOTUNE_HAD_SCHEDULER=_mq-deadline_ bfq\nE:AUTOTUNE_HAD_READ_EXPIRE=250\n"
    _udev_knows(array, last, said)
    record_persisted(find_array("md0", tmp_path), tmp_path)
    undo(find_array("md0", tmp_path), tmp_path)
    assert sysfs.value(last) == "mq-deadline"
    assert sysfs.value(expire) == "770"


@pytest.mark.parametrize(("had", "back"), [("_none_ bfq", "none"), ("none _bfq_", "bfq")])
def test_a_disk_that_has_joined_gets_its_own_length_back_not_the_rules(
    tmp_path: Path, array: Array, had: str, back: str
) -> None:
    """A scheduler is persisted with the length that the members' queues have. The disk may have
    had that scheduler already."""
    *_, last = schedulers(array)
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
        path.with_name("nr_requests").write_text("30\n")
    moved = tmp_path / "member"
    shutil.move(array.md / f"dev-{array.members[-1].name}", moved)
    smaller = find_array("md0", tmp_path)
    apply_values(smaller, {"scheduler": "bfq"}, tmp_path)
    for path in schedulers(smaller):
        path.with_name("nr_requests").write_text("30\n")
    persist_values(smaller, {"scheduler": "bfq"}, tmp_path)
    assert persisted.length_in_rule(array.uuid, tmp_path) == "30"
    shutil.move(moved, array.md / f"dev-{array.members[-1].name}")
    set_all([last], "bfq")
    last.with_name("nr_requests").write_text("30\n")
    said = f"E:AUTOTUNE_HAD_SCHEDULER={had}\nE:AUTOTUNE_HAD_NR_REQUESTS=40\n"
    _udev_knows(array, last, said)
    whole = find_array("md0", tmp_path)
    assert record_persisted(whole, tmp_path) == []
    undo(whole, tmp_path)
    assert sysfs.value(last) == back
    assert sysfs.value(last.with_name("nr_requests")) == "40"


@pytest.mark.parametrize("first", ["md0", "md1"])
@pytest.mark.parametrize("turns", [("md0", "md1"), ("md1", "md0")])
def test_a_disk_whose_partitions_joined_two_arrays_gets_back_what_it_had_before_both(
    tmp_path: Path, array: Array, first: str, turns: tuple[str, str]
) -> None:
    """At the second one udev saw what it had set for the first."""
    *_, last = schedulers(array)
    block, disk = tmp_path / "sys/block", last.parents[1]
    length = last.with_name("nr_requests")
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
        path.with_name("nr_requests").write_text("30\n")
    shutil.copytree(block / "md0", block / "md1", symlinks=True)
    (block / "md1/md/uuid").write_text("e" * 32 + "\n")
    gone = f"dev-{array.members[-1].name}"
    moved = tmp_path / "md0-member"
    shutil.move(array.md / gone, moved)
    shutil.rmtree(block / "md1/md" / gone)
    (tmp_path / "dev/md1").touch()
    values = {"md0": 24, "md1": 48}
    arrays = {name: find_array(name, tmp_path) for name in values}
    for name, value in values.items():
        persist_values(arrays[name], {"nr_requests": value}, tmp_path)
    seen, others = {first: 30}, {"md0": "md1", "md1": "md0"}
    seen[others[first]] = values[first]
    for number, name in enumerate(values, 1):
        part = disk / f"{disk.name}{number}"
        part.mkdir()
        (part / "partition").write_text(f"{number}\n")
        (part / "dev").write_text(f"7:4{number}\n")
        (tmp_path / f"sys/class/block/{part.name}").symlink_to(part)
        known = tmp_path / f"run/udev/data/b7:4{number}"
        known.parent.mkdir(parents=True, exist_ok=True)
        uuid = arrays[name].uuid
        had = f"E:AUTOTUNE_HAD_NR_REQUESTS={seen[name]}\n"
        since = 900 if name == first else 1010
        member = f"E:AUTOTUNE_MEMBER=1\nE:ID_FS_UUID={uuid}\n"
        said = f"{member}E:AUTOTUNE_OF={uuid}\nE:AUTOTUNE_SINCE={since}\n{had}"
        known.write_text(f"{said}E:AUTOTUNE_SET_NR_REQUESTS={values[name]}\n")
    length.write_text(f"{values[others[first]]}\n")
    for name in turns:
        assert record_persisted(arrays[name], tmp_path) == []
        undo(arrays[name], tmp_path)
    assert sysfs.value(length) == "30"


@pytest.mark.parametrize(("reads", "ends"), [("24", "30"), ("48", "30"), ("20", "20")])
def test_what_udev_set_last_for_an_array_that_the_disk_has_left_is_ours(
    tmp_path: Path, array: Array, reads: str, ends: str
) -> None:
    """A disk that joined this array, then another one, and was erased."""
    *_, last = schedulers(array)
    length = last.with_name("nr_requests")
    for number, path in enumerate(schedulers(array)):
        (path.parents[1] / "wwid").write_text(f"{number}\n")
        path.with_name("nr_requests").write_text("30\n")
    shutil.move(array.md / f"dev-{array.members[-1].name}", tmp_path / "member")
    smaller = find_array("md0", tmp_path)
    persist_values(smaller, {"nr_requests": 24}, tmp_path)
    length.write_text(f"{reads}\n")
    had = "E:AUTOTUNE_HAD_NR_REQUESTS=30\nE:AUTOTUNE_SET_NR_REQUESTS=48\n"
    _udev_knows(array, last, f"E:AUTOTUNE_OF={array.uuid}\n{had}", mark=False)
    theirs = record_persisted(smaller, tmp_path)
    assert len(theirs) == (reads == "20")
    undo(smaller, tmp_path)
    assert sysfs.value(length) == ends
