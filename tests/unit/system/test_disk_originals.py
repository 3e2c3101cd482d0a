"""What disks had before profiles, as udev's rules note it with a shell script, and commands do."""

import shutil
import subprocess
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import PLACE, SCRIPT

from autotune.errors import AutotuneError
from autotune.system.disk_originals import Note, forget, noted, noted_for, take_down

UUID, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    machine = fake_sysfs.FakeMachine(tmp_path)
    machine.disk("sda")
    machine.partition("sda", "sda1")
    return tmp_path / "sys/block/sda"


def script(when: str, device: Path, root: Path, *files: str, uuid: str = UUID) -> int:
    words = ["sh", SCRIPT, when, device, root / PLACE, uuid, *files]
    return subprocess.run(words, check=False).returncode


@pytest.mark.parametrize("device", ["sda", "sda/sda1"])
def test_what_a_disk_had_is_noted_once_whatever_is_set_for_whom(
    tmp_path: Path, disk: Path, device: str
) -> None:
    scheduler, length = disk / "queue/scheduler", disk / "queue/nr_requests"
    expire = disk / "queue/iosched/read_expire"
    files = ("queue/scheduler", "queue/nr_requests", "queue/iosched/read_expire")
    expire.write_text("770\n")
    path = tmp_path / "sys/block" / device
    assert script("before", path, tmp_path, *files) == 0
    assert noted(scheduler) == Note("mq-deadline", "*", UUID)
    fake_sysfs.write(scheduler, "kyber")
    assert script("after", path, tmp_path, *files) == 0
    found = {
        scheduler: Note("mq-deadline", "kyber", UUID),
        length: Note("128", "128", UUID),
        expire: Note("770", "", UUID),
    }
    assert noted_for(UUID, tmp_path) == found
    # Somebody has set a file since; then the disk comes to another array.
    fake_sysfs.write(length, "40")
    for when in ("before", "before", "after"):
        assert script(when, path, tmp_path, *files, uuid=OTHER) == 0
    assert noted_for(UUID, tmp_path) == {}
    assert noted_for(OTHER, tmp_path) == {
        scheduler: Note("mq-deadline", "kyber", OTHER),
        length: Note("40", "40", OTHER),
        expire: Note("770", "", OTHER),
    }
    forget(UUID, tmp_path, [])
    assert noted(length) is not None
    # A disk that has joined since it was looked what there is to undo.
    forget(OTHER, tmp_path, [length])
    assert noted_for(OTHER, tmp_path).keys() == found.keys()
    fake_sysfs.write(scheduler, "mq-deadline")
    forget(OTHER, tmp_path, [])
    assert list((tmp_path / PLACE).iterdir()) == []


def test_what_udev_is_about_to_set_is_not_forgotten(tmp_path: Path, disk: Path) -> None:
    length = disk / "queue/nr_requests"
    assert script("before", disk, tmp_path, "queue/nr_requests") == 0
    forget(UUID, tmp_path, [])
    fake_sysfs.write(length, "40")
    assert script("after", disk, tmp_path, "queue/nr_requests") == 0
    assert noted(length) == Note("128", "40", UUID)
    # Nor where that was put back already, be it that udev was killed: it may go on a moment later.
    assert script("before", disk, tmp_path, "queue/nr_requests") == 0
    forget(UUID, tmp_path, [length])
    assert noted(length) == Note("128", "128", UUID)
    assert script("after", disk, tmp_path, "queue/nr_requests") == 0
    assert noted(length) == Note("128", "40", UUID)


@pytest.mark.parametrize("text", ["rm -rf\n24\n", "30\n2", "", "\0\1\2\n\n\n", "30\nkyber\n"])
def test_a_damaged_note_is_none(tmp_path: Path, disk: Path, text: str) -> None:
    length = disk / "queue/nr_requests"
    take_down(length, Note("30", "24", UUID))
    (place,) = (path for path in (tmp_path / PLACE).rglob("nr_requests"))
    place.write_text(f"{text}{UUID}\n")
    assert noted(length) is None
    assert noted_for(UUID, tmp_path) == {}


def test_the_script_is_clean() -> None:
    for command in (["dash", "-n"], ["shellcheck", "--shell=sh"]):
        done = subprocess.run([*command, SCRIPT], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout


def test_two_partitions_of_a_disk_are_noted_at_the_same_moment(tmp_path: Path, disk: Path) -> None:
    words = ["sh", SCRIPT, "before", disk, tmp_path / PLACE, UUID, "queue/nr_requests"]
    many = [subprocess.Popen(words) for _ in range(20)]
    assert [each.wait() for each in many] == [0] * 20
    assert noted(disk / "queue/nr_requests") == Note("128", "*", UUID)


def test_commands_and_rules_note_alike(tmp_path: Path, disk: Path) -> None:
    length = disk / "queue/nr_requests"
    fake_sysfs.write(length, "24")
    take_down(length, Note("128", "24", UUID))
    for when in ("before", "after"):
        assert script(when, disk, tmp_path, "queue/nr_requests", uuid=OTHER) == 0
    assert noted(length) == Note("128", "24", OTHER)


def test_another_disk_of_the_same_name_has_no_notes(tmp_path: Path, disk: Path) -> None:
    length = disk / "queue/nr_requests"
    take_down(length, Note("128", "24", UUID))
    shutil.copytree(disk, disk.with_name("new"), symlinks=True)
    shutil.rmtree(disk)
    disk.with_name("new").rename(disk)
    assert noted(length) is None
    assert noted_for(UUID, tmp_path) == {}


def test_a_device_without_a_queue_of_its_own_is_left_alone(tmp_path: Path, disk: Path) -> None:
    (disk / "mq/0/nr_tags").unlink()
    (disk / "mq/0").rmdir()
    (disk / "mq").rmdir()
    assert script("before", disk, tmp_path, "queue/nr_requests") == 0
    assert not (tmp_path / PLACE).exists()


def test_what_cannot_be_noted_is_an_error(tmp_path: Path, disk: Path) -> None:
    (tmp_path / PLACE).parent.mkdir(parents=True)
    (tmp_path / PLACE).touch()
    assert script("before", disk, tmp_path, "queue/nr_requests") == 1
    with pytest.raises(AutotuneError, match="What sda had before cannot be noted"):
        take_down(disk / "queue/nr_requests", Note("128", "24", UUID))


def test_notes_of_a_disk_that_is_gone_go_with_the_next_that_are_over(
    tmp_path: Path, disk: Path
) -> None:
    other = shutil.copytree(disk, disk.with_name("sdb"), symlinks=True)
    length = other / "queue/nr_requests"
    for each in (disk / "queue/nr_requests", length):
        take_down(each, Note("128", "40", UUID))
    shutil.move(disk, tmp_path / "out")
    forget(OTHER, tmp_path, [])
    assert list(noted_for(UUID, tmp_path)) == [length]
    assert [path.name.partition("-")[0] for path in (tmp_path / PLACE).iterdir()] == ["sdb"]
