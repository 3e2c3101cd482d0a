"""What udev has set for a persisted profile goes back as what was applied does."""

import functools
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import (
    ORIGINAL,
    PLACE,
    SCRIPT,
    apply_values,
    left_out,
    persist_values,
    persisted_before,
    schedulers,
    set_all,
    shrink,
    start,
    udev_sets,
    undo,
)
from some_profile import profile

from autotune.deploy import persist, persisted
from autotune.deploy import undo as undoing
from autotune.deploy.apply import known_here
from autotune.deploy.in_force import active, refuse_damaged
from autotune.deploy.persisted import profile_path
from autotune.deploy.undo import not_noted, record_persisted, refuse_unreadable, stopped
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.knobs import by_name, read_setting
from autotune.knobs.profile_file import load_profile, save_profile
from autotune.problem.setting import Setting
from autotune.safety import applied as applied_module
from autotune.safety import deferred_restore, locks
from autotune.safety.applied import is_applied, known_by_record, left_on_disks, stopped_array
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_path, journal_path, waiting_path
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array, find_array, list_arrays


def cache(array: Array) -> Path:
    return array.md / "stripe_cache_size"


def boot(array: Array, at_first: Sequence[str]) -> None:
    """Another start of the machine, where disks have these schedulers, as the kernel sets them."""
    start(array.root, "later")
    for path, text in zip(schedulers(array), at_first, strict=True):
        for each in ("kyber" if text == "none" else "none", text):
            fake_sysfs.write(path, each)


def as_udev_sets_it(array: Array) -> Path:
    """A profile that was persisted before this boot; its file."""
    values = {"scheduler": "kyber", "stripe_cache_size": 512}
    path = persisted_before(array, values, {"scheduler": ORIGINAL, "stripe_cache_size": 256})
    udev_sets(array)
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


def test_what_udev_is_just_setting_is_waited_for(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it sets a moment after it was looked at would count as somebody else's."""
    as_udev_sets_it(array)
    late, *_ = schedulers(array)
    note = next((array.root / "run/autotune/disks").glob(f"{late.parts[-3]}-*")) / "queue/scheduler"
    original, _, uuid = note.read_text().splitlines()
    note.write_text(f"{original}\n*\n{uuid}\n")
    fake_sysfs.write(late, ORIGINAL)
    waited: list[Path] = []

    def udev_goes_on(root: Path) -> None:
        waited.append(root)
        fake_sysfs.write(late, "kyber")
        note.write_text(f"{original}\nkyber\n{uuid}\n")

    monkeypatch.setattr(undoing, "settle", udev_goes_on)
    assert record_persisted(array, tmp_path) == []
    assert undo(array, tmp_path).foreign == []
    assert {sysfs.value(path) for path in schedulers(array)} == {ORIGINAL}
    assert waited == [array.root]


def test_what_udev_finishes_after_an_undo_is_still_noted(tmp_path: Path, array: Array) -> None:
    """Of what it was about to set, the original is not forgotten."""
    as_udev_sets_it(array)
    late, *_ = schedulers(array)
    notes = array.root / "run/autotune/disks"
    note = next(notes.glob(f"{late.parts[-3]}-*")) / "queue/scheduler"
    original, _, uuid = note.read_text().splitlines()
    note.write_text(f"{original}\n*\n{uuid}\n")
    record_persisted(array, tmp_path)
    undo(array, tmp_path)
    assert sysfs.value(late) == ORIGINAL
    fake_sysfs.write(late, "kyber")
    words = ["sh", str(SCRIPT), "after", str(late.parents[1]), str(notes), uuid, "queue/scheduler"]
    subprocess.run(words, check=True)
    assert record_persisted(array, tmp_path) == []
    assert undo(array, tmp_path).foreign == []
    assert sysfs.value(late) == ORIGINAL


def test_the_notes_of_an_apply_that_came_to_nothing_go_with_it(
    tmp_path: Path, array: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the owner sets then is theirs, be it the same."""

    def full(*_: object) -> None:
        raise AutotuneError("The disk is full.")

    monkeypatch.setattr(applied_module, "keep", full)
    before = [sysfs.value(path) for path in schedulers(array)]
    with pytest.raises(AutotuneError, match="full"):
        apply_values(array, {"scheduler": "kyber", "nr_requests": 24}, tmp_path)
    assert [*(array.root / "run/autotune/disks").rglob("scheduler")]
    journal = Journal.claimed(journal_path(tmp_path, array.uuid))
    assert restore(journal, tmp_path).complete
    assert [sysfs.value(path) for path in schedulers(array)] == before
    assert not [*(array.root / "run/autotune/disks").rglob("*")]


def test_a_length_whose_note_is_lost_is_not_put_back_as_somebody_elses(
    tmp_path: Path, array: Array
) -> None:
    """A switch of the scheduler resets it; with its note it would go back to what it was."""
    values = {"scheduler": "kyber", "nr_requests": 24}
    persisted_before(array, values, {"scheduler": ORIGINAL, "nr_requests": 64})
    udev_sets(array)
    for note in (array.root / "run/autotune/disks").rglob("nr_requests"):
        note.unlink()
    told = record_persisted(array, tmp_path)
    assert len(told) == len(array.disks)
    assert all("nr_requests reads 24, as the profile has it" in text for text in told)
    assert "nr_requests" not in {path.name for path in known_by_record(array, tmp_path)}


def test_what_was_there_before_is_not_known_is_told_to_whoever_sets_over_it(
    tmp_path: Path, array: Array
) -> None:
    as_udev_sets_it(array)
    assert not_noted(array, tmp_path) == []
    shutil.rmtree(array.root / "run/autotune/disks")
    told = not_noted(array, tmp_path)
    assert len(told) == len(schedulers(array))
    first = f"{schedulers(array)[0]} reads kyber, as the profile has it; what it read before is not"
    assert told[0].startswith(first)
    assert told[0].endswith("until then it is taken for the original.")
    apply_values(array, {"scheduler": "bfq"}, tmp_path)
    # Now a record says what goes back.
    assert not_noted(array, tmp_path) == []


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


@pytest.mark.parametrize("own", [True, False])
def test_a_speed_that_was_so_by_the_sysctl_follows_it_again(
    tmp_path: Path, array: Array, own: bool
) -> None:
    """To apply it wrote nothing: only udev has made the number the array's own."""
    file, sysctl = array.md / "sync_speed_min", tmp_path / "proc/sys/dev/raid/speed_limit_min"
    sysctl.write_text("1000\n")
    file.write_text(f"1000 ({'local' if own else 'system'})\n")
    values: Setting = {"sync_speed_min": 1000, "stripe_cache_size": 512}
    apply_values(array, values, tmp_path)
    persist_values(array, values, tmp_path)
    file.write_text("1000 (local)\n")
    record_persisted(array, tmp_path)
    assert undo(array, tmp_path).foreign == []
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
    monkeypatch.setattr(undoing, "keep", full)
    with pytest.raises(AutotuneError, match="No space"):
        record_persisted(array, tmp_path)
    assert not journal_path(tmp_path, array.uuid).exists()
    assert not is_applied(array, tmp_path)
    assert sysfs.value(cache(array)) == "512"


def test_a_disk_that_has_left_goes_back_too_and_keeps_no_other_from_it(
    tmp_path: Path, array: Array
) -> None:
    first = ("none", *(ORIGINAL,) * 4)
    files = schedulers(array)
    for path, text in zip(files, first, strict=True):
        fake_sysfs.write(path, text)
    persisted_before(array, {"scheduler": "bfq"}, {"scheduler": ",".join(first)})
    udev_sets(array)
    shrink(array, 4)
    array = find_array("md0", tmp_path)
    record_persisted(array, tmp_path)
    undo(array, tmp_path)
    assert tuple(sysfs.value(path) for path in files) == first


@pytest.mark.parametrize("had", ["none", "kyber", ORIGINAL])
def test_what_a_disk_had_that_has_joined_is_what_was_before(
    tmp_path: Path, array: Array, had: str
) -> None:
    last = array.disks[-1]
    with left_out(array) as smaller:
        persist_values(smaller, {"scheduler": "kyber"}, tmp_path)
        fake_sysfs.write(schedulers(array)[-1], had)
    udev_sets(array, last)
    whole = find_array("md0", tmp_path)
    now = read_setting(whole, [by_name("scheduler")])
    made = known_here(profile({"scheduler": "bfq"}), whole, now, tmp_path)
    expected = ORIGINAL if had == ORIGINAL else ",".join([ORIGINAL] * 4 + [had])
    assert made.before == {"scheduler": expected}


def test_queues_that_differed_are_known_disk_by_disk(tmp_path: Path, array: Array) -> None:
    """A switch of their schedulers makes them alike, so that a profile can set them."""
    set_all(schedulers(array)[:2], "none")
    persist_values(array, {"scheduler": "bfq"}, tmp_path)
    boot(array, ["none"] * 2 + [ORIGINAL] * 3)
    udev_sets(array)
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
    assert gone.leaves == {*array.disks}
    said = [f"{theirs} reads bfq, which was set after that"]
    assert record_persisted(gone, tmp_path) == said
    persist.unpersist(array.uuid, tmp_path)
    journal = Journal.claimed(applied_path(tmp_path, array.uuid))
    assert restore(journal, tmp_path).complete
    assert sysfs.value(theirs) == "bfq"
    assert {sysfs.value(path) for path in ours} == {ORIGINAL}


@pytest.mark.parametrize(
    ("damage", "said"),
    [("shared", "others"), ("newer", "schema version"), ("cut", "is not valid")],
)
def test_a_profile_that_alone_knows_what_was_before_is_not_thrown_away(
    tmp_path: Path, array: Array, damage: str, said: str
) -> None:
    array = named(array)
    as_udev_sets_it(array)
    refuse_unreadable(array)
    path = profile_path(array.uuid, tmp_path)
    if damage == "shared":
        path.parent.chmod(0o775)
    else:
        old, new = (
            ('"schema_version": 1', '"schema_version": 2') if damage == "newer" else ("}", "")
        )
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(RefusalError, match=said) as refused:
        refuse_unreadable(array)
    assert f"nothing is removed. Correct that and try again, or move {path}" in str(refused.value)


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
    boot(array, [ORIGINAL] * 5)
    by_their_rule()
    udev_sets(array)
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


@pytest.mark.parametrize("knobs", [{"nr_requests": 24}, {"scheduler": "kyber", "nr_requests": 24}])
@pytest.mark.parametrize("after", ["", "17"])
def test_what_goes_with_a_length_or_a_scheduler_comes_back_too(
    tmp_path: Path, array: Array, knobs: dict[str, str | int], after: str
) -> None:
    """Of a disk that joins, as much as its owner has set there, whatever a profile has."""
    array = named(array)
    persist_values(array, knobs, tmp_path)
    boot(array, [ORIGINAL] * 5)
    mine = {"async_depth": "9", "front_merges": "0", "writes_starved": "5", "write_expire": "1500"}
    folders = [path.parent / "iosched" for path in schedulers(array)]
    for folder in folders:
        for name, text in mine.items():
            (folder / name).write_text(f"{text}\n")
    udev_sets(array)
    depth = folders[0] / "async_depth"
    assert sysfs.read_or(depth, "") != "9"
    if after and "scheduler" not in knobs:
        # And one that he sets later.
        depth.write_text(f"{after}\n")
    record_persisted(array.now(), tmp_path)
    undo(array, tmp_path)
    for folder in folders:
        wanted = dict(mine)
        if after and "scheduler" not in knobs and folder == folders[0]:
            wanted["async_depth"] = after
        assert {name: sysfs.value(folder / name) for name in mine} == wanted
    assert not list((tmp_path / PLACE).rglob("*"))


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
    boot(array, before)
    udev_sets(array)
    record_persisted(array.now(), tmp_path)
    assert undo(array, tmp_path).foreign == []
    assert [sysfs.value(path) for path in schedulers(array)] == before


def test_a_speed_that_follows_the_sysctl_again_is_nobodys(tmp_path: Path, array: Array) -> None:
    persist_values(array, {"sync_speed_min": 9000}, tmp_path)
    undo(array, tmp_path)
    assert record_persisted(array, tmp_path) == []


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
    for path in limits:
        path.write_text("9999999\n")
    udev_sets(array)
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
    boot(array, [ORIGINAL] * 5)
    own.write_text("300\n")
    udev_sets(array)
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
    persisted.rule_path("mine", tmp_path).touch()
    assert persisted.persisted_uuids(tmp_path) == [array.uuid]


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
    set_all(lengths, "100")
    udev_sets(array)
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


@pytest.mark.parametrize("before", ["200000", "4000"])
def test_what_an_array_without_redundancy_hides_is_told(
    tmp_path: Path, array: Array, before: str
) -> None:
    """On its way from RAID 10 to 5, say: then it is in force again."""
    persisted_before(array, {"sync_speed_max": 4000}, {"sync_speed_max": int(before)})
    fake_sysfs.write(array.md / "sync_speed_max", "4000")
    (array.md / "level").write_text("raid0\n")
    for name in ("sync_speed_min", "sync_speed_max", "sync_action"):
        (array.md / name).unlink()
    array = array.now()
    if before == "4000":
        assert record_persisted(array, tmp_path) == []
        return
    (told,) = record_persisted(array, tmp_path)
    assert "sync_speed_max of /dev/md0, which cannot be seen" in told
