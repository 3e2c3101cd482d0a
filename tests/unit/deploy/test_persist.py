"""What --persist writes and removes, on files that stand for the machine's."""

import contextlib
import dataclasses
import errno
import os
import re
import subprocess
from pathlib import Path

import fake_sysfs
import pytest

from autotune import durable
from autotune.deploy import persist, persisted, udevd, whole_files
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.export import udev
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import Profile
from autotune.system.array import Array, find_array

EXAMPLE = load_profile(Path(__file__).parents[3] / "examples/profile.json")
PROFILE = EXAMPLE.model_copy(update={"knobs": {"stripe_cache_size": 256, "scheduler": "bfq"}})
OTHER = EXAMPLE.model_copy(update={"knobs": {"stripe_cache_size": 512}})


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    machine = fake_sysfs.raid6(tmp_path)
    (tmp_path / "etc/udev").mkdir(parents=True)
    return machine


def array(machine: fake_sysfs.FakeMachine) -> Array:
    return find_array("md0", machine.root)


def kept(machine: fake_sysfs.FakeMachine, profile: Profile = PROFILE) -> list[str]:
    """Persist a profile; return what was said."""
    said: list[str] = []
    persist.persist(profile, array(machine), Path("/var/lib/autotune"), said.append)
    return said


def everything(root: Path) -> dict[str, bytes | None]:
    """All of /etc: every file's bytes, and the folders."""
    found = sorted((root / "etc").rglob("*"))
    return {str(p.relative_to(root)): p.read_bytes() if p.is_file() else None for p in found}


def test_the_files_are_there_whatever_the_umask(machine: fake_sysfs.FakeMachine) -> None:
    mask = os.umask(0o077)
    try:
        kept(machine)
    finally:
        os.umask(mask)
    uuid = array(machine).uuid
    rule, profile = (f(uuid, machine.root) for f in (persisted.rule_path, persisted.profile_path))
    kept_profile = load_profile(profile)
    before = {name: PROFILE.before[name] for name in PROFILE.knobs}
    own = {"before": before, "disks": kept_profile.disks, "system": ()}
    assert kept_profile == PROFILE.model_copy(update=own)
    assert f'TEST=="/run/autotune/records/journal-{uuid}"' in rule.read_text()
    assert [p.stat().st_mode & 0o777 for p in (rule, profile)] == [0o644] * 2
    assert [p.parent.stat().st_mode & 0o777 for p in (rule, profile)] == [0o755] * 2
    assert not list((machine.root / "etc").rglob("*.part"))


def test_a_copy_of_the_rules_in_the_initramfs_does_nothing_by_itself(
    machine: fake_sysfs.FakeMachine,
) -> None:
    """There it outlives its removal, but has no profile beside it."""
    kept(machine)
    uuid = array(machine).uuid
    lines = persisted.rule_path(uuid, machine.root).read_text().splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[2] == f'TEST!="/etc/autotune/persisted/{uuid}.json", GOTO="autotune_end"'
    assert all("GOTO=" in line for line in rules[:2])


@pytest.mark.parametrize("earlier", [False, True])
@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("what", ["fsync", "replace", "mkdir"])
def test_a_write_that_fails_leaves_all_as_it_was(
    machine: fake_sysfs.FakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    at: int,
    earlier: bool,
) -> None:
    if earlier:
        kept(machine)
    before, calls = everything(machine.root), [0]
    owner = os if what == "fsync" else Path
    real = getattr(owner, what)

    def failing(*args: object, **options: object) -> object:
        calls[0] += 1
        if calls[0] == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, what, failing)
        fault = None
        try:
            kept(machine, OTHER)
        except AutotuneError as error:
            fault = str(error)
    if calls[0] < at:
        assert fault is None
        return
    assert "nothing was persisted" in str(fault)
    assert everything(machine.root) == before


def test_unpersist_leaves_what_is_not_its_own(machine: fake_sysfs.FakeMachine) -> None:
    before = everything(machine.root)
    kept(machine)
    uuid = array(machine).uuid
    assert persisted.persisted_uuids(machine.root) == [uuid]
    assert len(persist.unpersist(uuid, machine.root)) == 3
    assert persisted.persisted_uuids(machine.root) == []
    after = everything(machine.root)
    assert after == {**before, "etc/udev/rules.d": None}
    assert persist.unpersist(uuid, machine.root) == []
    kept(machine)
    mine = machine.put("etc/autotune/profiles/mine.json", "{}")
    persist.unpersist(uuid, machine.root)
    assert [p.name for p in (machine.root / "etc/autotune").iterdir()] == ["profiles"]
    assert mine.exists()


def test_what_cannot_be_persisted_is_refused(machine: fake_sysfs.FakeMachine) -> None:
    here = array(machine)
    mixed = EXAMPLE.model_copy(update={"knobs": {"scheduler": "none,bfq,none,bfq,none"}})
    with pytest.raises(UsageError, match="one for all disks"):
        persist.check(here, mixed)
    (machine.root / "etc/udev").rmdir()
    with pytest.raises(RefusalError, match="without udev"):
        persist.check(here)
    without = dataclasses.replace(here, metadata="none")
    with pytest.raises(RefusalError, match="no UUID that lasts"):
        persist.check(without)
    machine.put("sys/block/md0/md/uuid", "")
    with pytest.raises(RefusalError, match="no UUID"):
        persist.check(array(machine))


@pytest.mark.skipif(os.geteuid() != 0, reason="root is refused")
@pytest.mark.parametrize("folder", ["etc/autotune", "etc/autotune/persisted", "etc/udev/rules.d"])
def test_where_others_could_change_what_udev_runs_nothing_is_persisted(
    machine: fake_sysfs.FakeMachine, folder: str
) -> None:
    """The rule has root run a script out of that folder."""
    path = machine.root / folder
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)
    with pytest.raises(RefusalError, match="as root, what others can change"):
        persist.check(array(machine))
    path.chmod(0o755)
    persist.check(array(machine))


def test_rules_of_others_for_the_same_knobs_are_named_and_ours_are_not(
    machine: fake_sysfs.FakeMachine,
) -> None:
    kept(machine)
    assert [text for text in kept(machine) if "disable it" in text] == []
    machine.put("etc/udev/rules.d/99-mine.rules", '# x\nATTR{queue/scheduler}="none"')
    machine.put("etc/udev/rules.d/99-ahead.rules", 'ATTR{queue/read_ahead_kb}="64"')
    (said,) = [text for text in kept(machine) if "disable it" in text]
    assert "/etc/udev/rules.d/99-mine.rules:2" in said


def test_a_profile_that_was_changed_after_its_rule_is_told(
    machine: fake_sysfs.FakeMachine,
) -> None:
    kept(machine)
    uuid = array(machine).uuid
    assert persisted.changed_by_hand(uuid, machine.root) == ""
    path = persisted.profile_path(uuid, machine.root)
    path.write_text(path.read_text().replace("256", "512"))
    assert "still sets what the profile had then" in persisted.changed_by_hand(uuid, machine.root)
    assert persist.remove_rule(uuid, machine.root) == [persisted.rule_path(uuid, machine.root)]
    assert persisted.persisted_uuids(machine.root) == [uuid]
    assert persisted.changed_by_hand(uuid, machine.root) == ""
    assert persist.remove_rule(uuid, machine.root) == []


def test_an_exported_rule_stays_and_does_nothing_while_a_profile_is_persisted(
    machine: fake_sysfs.FakeMachine,
) -> None:
    uuid = array(machine).uuid
    ((name, text),) = udev.render(PROFILE, uuid).items()
    exported = machine.put(f"etc/udev/rules.d/{name}", text)
    assert persisted.persisted_uuids(machine.root) == []
    assert [said for said in kept(machine) if "disable it" in said] == []
    gate = f'TEST=="{persisted.profile_path(uuid)}", GOTO="autotune_end"'
    assert gate in text.splitlines()
    assert exported not in persist.unpersist(uuid, machine.root)
    said: list[str] = []
    udevd.tell_exported(uuid, said.append, machine.root)
    assert f"The exported rule {exported} is there, too" in said[0]
    assert exported.exists()


def test_no_event_reaches_a_disk_that_is_not_in_the_array(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At one, mdadm starts an array that its owner has stopped."""
    here, asked = array(machine), list[list[str]]()
    kept(machine)
    machine.put("run/udev/control", "")
    machine.put("sys/class/block/sdz/dev", "65:144")
    uuid = udev.forms(here.uuid)[1]
    machine.put("run/udev/data/b65:144", f"E:ID_FS_UUID={uuid}\nE:AUTOTUNE_MEMBER=0123\n")
    monkeypatch.setattr(udevd, "_udevadm", lambda *words: asked.append(list(words)))
    for there in (True, False):
        if not there:
            persist.unpersist(here.uuid, machine.root)
        for known in (here, None):
            asked.clear()
            udevd.tell_udev(known, lambda _: None, machine.root)
            told = {Path(word).name for command in asked for word in command if "/sys/" in word}
            assert told == ({"md0", *here.disks} if known else set())


def test_what_udev_remembers_of_an_earlier_rule_is_not_taken_for_this_one(
    machine: fake_sysfs.FakeMachine,
) -> None:
    """Else it would not set a disk that comes back, after the rule was removed and made anew."""
    keys = []
    for _ in range(2):
        kept(machine)
        rule = persisted.rule_path(array(machine).uuid, machine.root).read_text()
        keys.append(re.findall(r'ENV\{AUTOTUNE_(?:ARRAY|CACHE|MEMBER)\}="(\w+)"', rule))
        persist.unpersist(array(machine).uuid, machine.root)
    assert keys[0]
    assert not {*keys[0]} & {*keys[1]}


def test_without_udevd_it_says_when_the_rules_count(machine: fake_sysfs.FakeMachine) -> None:
    assert any("udevd does not run" in text for text in kept(machine))


def test_a_value_that_something_else_has_set_is_told(machine: fake_sysfs.FakeMachine) -> None:
    (said,) = [text for text in kept(machine, OTHER) if "reads" in text]
    assert "stripe_cache_size reads 256 and not 512" in said


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_a_folder_that_is_a_mount_point_stays(tmp_path: Path) -> None:
    uuid = "a" * 32
    for path in (persisted.profile_path(uuid, tmp_path), persisted.rule_path(uuid, tmp_path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    # As a unit's ReadWritePaths makes it.
    folder = tmp_path / "etc/autotune"
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        assert len(persist.unpersist(uuid, tmp_path)) == 2
    finally:
        subprocess.run(["umount", folder], check=True)
    assert folder.is_dir()


class PowerCut(BaseException):
    """The power fails."""


@pytest.mark.parametrize("number", [1, 2, 3])
def test_whenever_the_power_fails_the_profile_is_that_of_the_rule(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As the rule sets its values at the next boot, and the profile undoes them."""
    uuid, seen = array(machine).uuid, 0
    rule = persisted.rule_path(uuid, machine.root)
    kept(machine, PROFILE.model_copy(update={"name": "first"}))

    def sync(_folder: Path) -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(whole_files, "sync_folder", sync)
        with contextlib.suppress(PowerCut):
            kept(machine, PROFILE.model_copy(update={"name": "second"}))
    assert "from the profile second of" in rule.read_text()
    assert load_profile(persisted.profile_path(uuid, machine.root)).name == "second"
    kept(machine, PROFILE.model_copy(update={"name": "third"}))
    assert load_profile(persisted.profile_path(uuid, machine.root)).name == "third"
    assert not list((machine.root / "etc").rglob("*.part"))


def test_a_power_cut_before_the_rule_is_replaced_leaves_the_first_profile(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    uuid = array(machine).uuid
    kept(machine, PROFILE.model_copy(update={"name": "first"}))

    def cut(*_: object) -> None:
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", cut)
        with contextlib.suppress(PowerCut):
            kept(machine, PROFILE.model_copy(update={"name": "second"}))
    assert list((machine.root / "etc").rglob("*.part"))
    assert load_profile(persisted.profile_path(uuid, machine.root)).name == "first"
    persist.unpersist(uuid, machine.root)
    assert not [path for path in (machine.root / "etc").rglob("*") if path.is_file()]


@pytest.mark.parametrize("before_it", [0, 1])
def test_what_a_kill_left_half_written_is_known(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch, before_it: int
) -> None:
    """After one file was written beside its place, and after both were."""
    uuid, written = array(machine).uuid, 0
    beside = durable.write_beside

    def cut(*args: object) -> Path:
        nonlocal written
        written += 1
        if written > before_it + 1:
            raise PowerCut
        return beside(*args)  # type: ignore[arg-type]

    def cut_too(*_: object) -> None:
        raise PowerCut

    with monkeypatch.context() as patch:
        patch.setattr(whole_files, "write_beside", cut)
        patch.setattr(Path, "replace", cut_too)
        with contextlib.suppress(PowerCut):
            kept(machine)
    assert persisted.persisted_uuids(machine.root) == []
    assert persisted.half_written(machine.root) == [uuid]
    persist.unpersist(uuid, machine.root)
    assert persisted.half_written(machine.root) == []
    kept(machine)
    assert persisted.half_written(machine.root) == []
