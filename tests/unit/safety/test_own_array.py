"""Arrays of ours: known by the journal before they are made, by their superblock after, and removed
by whoever restores. With real arrays: `tests/lab/guest_design.py`."""

import errno
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from autotune.safety import own_array, own_superblock
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.own_array import Removal
from autotune.safety.own_superblock import AT_BYTES, DISKS_AT, LEVEL_AT, MAGIC, UUID_AT
from autotune.safety.restore import restore

UUID = "0123456789abcdef0123456789abcdef"


Asked = tuple[str, dict[str, str], bool, bool, bool]
MAKING = {"vda": "0123456789ab", "vdb": ""}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    found = new_journal(tmp_path / "journal/a.jsonl", UUID, "/dev/md127", ())
    found.making(MAKING)
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """What is asked to be removed, and never is."""
    calls: list[Asked] = []

    def remove_left(
        uuid: str, disks: dict[str, str], rebooted: bool, begun: bool, removing: bool
    ) -> Removal:
        calls.append((uuid, disks, rebooted, begun, removing))
        return Removal(["/dev/md127"], ["the superblock of /dev/vdb cannot be zeroed: busy"])

    monkeypatch.setattr(own_array, "remove_left", remove_left)
    return calls


def test_a_restore_removes_what_the_journal_announces_and_keeps_it_until_all_is_gone(
    journal: Journal, asked: list[Asked]
) -> None:
    loaded = Journal.load(journal.path)
    assert loaded.record.making == MAKING
    outcome = restore(loaded)
    assert asked == [(UUID, MAKING, False, False, True)]
    assert outcome.removed == ["/dev/md127"]
    assert not outcome.complete
    assert journal.path.exists()


def test_after_a_reboot_they_are_looked_for_on_every_disk(
    journal: Journal, asked: list[Asked]
) -> None:
    lines = journal.path.read_text().splitlines()
    head = {**json.loads(lines[0]), "boot": "another", "started_s": 1.0, "kernel": ""}
    journal.path.write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
    assert restore(Journal.load(journal.path)).rebooted
    assert asked == [(UUID, MAKING, True, False, True)]


@pytest.mark.parametrize("whole", [False, True])
def test_a_late_guardian_takes_no_array_that_was_whole_for_one_that_was_only_begun(
    journal: Journal, asked: list[Asked], whole: bool
) -> None:
    """Somebody may have made a filesystem on it and stopped it, while the guardian was stopped."""
    journal.made(whole=True)
    journal.made(whole=whole)
    restore(Journal.load(journal.path), at_once=True)
    assert asked == [(UUID, MAKING, False, not whole, not whole)]


def test_a_journal_of_an_earlier_version_says_nothing_of_the_disks(journal: Journal) -> None:
    journal.record.learn({"kind": "making", "disks": ["vdc"]})
    assert journal.record.making == {"vdc": ""}


def test_without_arrays_of_ours_nothing_is_looked_for(tmp_path: Path, asked: list[Asked]) -> None:
    bare = new_journal(tmp_path / "journal/b.jsonl", UUID, "/dev/md127", ())
    assert restore(Journal.load(bare.path)).complete
    assert not asked


@pytest.mark.parametrize(
    ("magic", "uuid", "ours"),
    [(MAGIC, UUID, True), (MAGIC, UUID[::-1], False), (b"\0" * 8, UUID, False)],
)
def test_a_superblock_is_ours_by_its_uuid_alone(
    tmp_path: Path, magic: bytes, uuid: str, ours: bool
) -> None:
    disk = tmp_path / "disk"
    block = bytearray(4096)
    block[: len(magic)] = magic
    block[UUID_AT : UUID_AT + 16] = bytes.fromhex(uuid)
    disk.write_bytes(bytes(AT_BYTES) + block)
    descriptor = os.open(disk, os.O_RDONLY)
    try:
        assert own_superblock._is_ours(descriptor, UUID) is ours
    finally:
        os.close(descriptor)


def test_what_udev_begins_again_meanwhile_is_stopped_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of it is held before the first superblock goes: half an array nobody could look at."""
    disk = tmp_path / "disk"
    disk.write_bytes(superblock())
    begun, opened, opens = ["md127"], [], os.open

    def while_it_is_held(path: str, *more: int) -> int:
        opened.append(path)
        if begun and path == "/dev/cciss/disk":
            raise OSError(errno.EBUSY, "Device or resource busy")
        assert own_superblock._superblock(opens(disk, os.O_RDONLY)).startswith(MAGIC)
        return opens(disk, os.O_RDWR)

    monkeypatch.setattr(own_array, "LOOK_S", 0.0)
    monkeypatch.setattr(own_array, "_arrays", lambda _uuid, _members: list(begun))
    monkeypatch.setattr(own_array.os, "open", while_it_is_held)
    found = Removal()
    own_array._zero_all(UUID, ["vda", "cciss!disk"], found, begun.remove)
    assert not begun
    assert found.removed == ["the superblock on /dev/vda", "the superblock on /dev/cciss!disk"]
    assert opened == ["/dev/vda", "/dev/cciss/disk"] * 2
    assert not disk.read_bytes()[AT_BYTES:].strip(b"\0")


def superblock() -> bytes:
    block = bytearray(4096)
    block[: len(MAGIC)] = MAGIC
    block[UUID_AT : UUID_AT + 16] = bytes.fromhex(UUID)
    return bytes(AT_BYTES) + block


@pytest.mark.parametrize("back_as", ["", "vdz"])
def test_a_disk_that_is_gone_may_have_a_superblock_of_ours_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back_as: str
) -> None:
    """Plugged in again, udev would begin the array, and nobody would know whose it is."""

    def bears(disk: str, uuid: str) -> bool:
        if disk == "vdb":
            raise OSError(errno.ENXIO, "No such device or address")
        return disk in ("vda", back_as)

    for name in ("vda", "vdc", *filter(None, [back_as])):
        (tmp_path / name / "device").mkdir(parents=True)
    monkeypatch.setattr(own_array, "DISKS", tmp_path)
    monkeypatch.setattr(own_array, "bears", bears)
    monkeypatch.setattr(own_array, "_arrays", lambda *_: [])
    monkeypatch.setattr(own_array, "_zero_all", note_all)
    removal = own_array.remove_left(UUID, {"vda": "", "vdb": ""}, begun=True)
    zeroed = [f"the superblock on /dev/{disk}" for disk in ("vda", back_as) if disk]
    assert removal.removed == zeroed
    assert bool(removal.failed) == (not back_as)
    assert all("whether /dev/vdb has" in text for text in removal.failed)
    # After a reboot every disk is looked at, and many cannot be read.
    assert own_array.remove_left(UUID, {"vda": ""}, rebooted=True, begun=True).failed == []


@pytest.mark.parametrize("rebooted", [False, True])
def test_disks_that_say_the_same_of_themselves_are_each_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebooted: bool
) -> None:
    for name in ("vdx", "vdy"):
        (tmp_path / name / "device").mkdir(parents=True)
    monkeypatch.setattr(own_array, "DISKS", tmp_path)
    monkeypatch.setattr(own_array, "hardware", lambda *_: "11")
    monkeypatch.setattr(own_array, "bears", lambda *_: True)
    monkeypatch.setattr(own_array, "_arrays", lambda *_: [])
    monkeypatch.setattr(own_array, "_zero_all", note_all)
    both = {"vda": "11", "vdb": "11"}
    removal = own_array.remove_left(UUID, both, rebooted, begun=True)
    assert removal.removed == ["the superblock on /dev/vdx", "the superblock on /dev/vdy"]
    assert removal.failed == []
    monkeypatch.setattr(own_array, "bears", lambda disk, _uuid: disk == "vdx")
    removal = own_array.remove_left(UUID, {**both, "vdx": "11"}, rebooted, begun=True)
    assert "whether /dev/vda has" in removal.failed[0]


def test_another_disk_that_says_the_same_is_not_taken_for_one_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("vda", "vdc", "vdd"):
        (tmp_path / name / "device").mkdir(parents=True)
    members: list[str] = []
    monkeypatch.setattr(own_array, "DISKS", tmp_path)
    monkeypatch.setattr(own_array, "hardware", lambda *_: "11")
    monkeypatch.setattr(own_array, "bears", lambda disk, _uuid: disk in members)
    monkeypatch.setattr(own_array, "_arrays", lambda *_: [])
    monkeypatch.setattr(own_array, "_zero_all", note_all)
    both = {"vda": "11", "vdb": "11"}
    (fault,) = own_array.remove_left(UUID, both, begun=True).failed
    assert "whether /dev/vdb has a superblock of ours cannot be seen" in fault
    # It came back under another name.
    members.append("vdd")
    removal = own_array.remove_left(UUID, both, begun=True)
    assert (removal.removed, removal.failed) == (["the superblock on /dev/vdd"], [])


@pytest.mark.parametrize("rebooted", [False, True])
def test_a_disk_that_is_not_there_yet_keeps_the_journal_and_no_other_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rebooted: bool
) -> None:
    """At boot a disk may come late; and a suspended device that is none of ours never answers."""
    (tmp_path / "vdx/device").mkdir(parents=True)
    (tmp_path / "vdy/device").mkdir(parents=True)
    (tmp_path / "dm-0").mkdir()
    read: list[str] = []
    monkeypatch.setattr(own_array, "DISKS", tmp_path)
    monkeypatch.setattr(own_array, "hardware", lambda name, _root: {"vdx": "11", "vdy": "33"}[name])
    monkeypatch.setattr(own_array, "bears", lambda disk, _uuid: read.append(disk))
    monkeypatch.setattr(own_array, "_arrays", lambda *_: [])
    (fault,) = own_array.remove_left(UUID, {"vda": "11", "vdb": "22"}, rebooted).failed
    assert "whether /dev/vdb has a superblock of ours cannot be seen (No such device)" in fault
    assert read == ["vdx"]
    assert own_array.remove_left(UUID, {"vda": "11", "vdb": "33"}, rebooted).failed == []


def note_all(_uuid: str, members: list[str], found: Removal, _stop: object) -> None:
    for disk in members:
        found.note(f"the superblock on /dev/{disk}", "")


LEFT_ON = dict.fromkeys(("vda", "vdb", "vdc"), "")


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What is on three disks that a design has left, with nothing that speaks against removal."""
    state: dict[str, object] = {"members": ["vda", "vdb", "vdc"], "arrays": ["md127"]}
    state |= {"degraded": "0", "size": "8", "content": None, "users": 0, "stopped": 0}

    def stop(_descriptor: int, request: int) -> None:
        assert request == 0x932
        if state["users"]:
            # What somebody does there takes its time, and then there is something on it.
            state["users"], state["content"] = 0, "it has a signature of ext4"
            raise OSError(errno.EBUSY, "Device or resource busy")
        state["stopped"] = 1

    monkeypatch.setattr(own_array, "LOOK_S", 0.0)
    monkeypatch.setattr(own_array, "_members", lambda *_: (state["members"], {}))
    monkeypatch.setattr(own_array, "_arrays", lambda *_: state["arrays"])
    monkeypatch.setattr(own_array, "node", lambda _disk: "/dev/null")
    monkeypatch.setattr(own_array.fcntl, "ioctl", stop)
    monkeypatch.setattr(own_array, "signature", lambda _node: state["content"])
    monkeypatch.setattr(own_array.sysfs, "read_or", lambda path, x: state.get(path.name, x))
    monkeypatch.setattr(own_array, "_zero_all", note_all)
    return state


def test_what_a_design_has_left_is_removed_where_it_is_seen_to_be_blank(
    left: dict[str, object],
) -> None:
    removal = own_array.remove_left(UUID, LEFT_ON)
    assert left["stopped"]
    assert removal.failed == []
    assert removal.removed[0] == "/dev/md127"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"arrays": []}, "it is not active"),
        ({"size": "0"}, "it is not active"),
        ({"arrays": ["md126", "md127"]}, "its disks are in md126 and md127"),
        ({"degraded": "1"}, "not all 3 members of /dev/md127 are there"),
        ({"members": ["vda", "vdb"]}, "not all 3 members of /dev/md127 are there"),
        ({"content": "it has a signature of ext4"}, "on /dev/md127, it has a signature of ext4"),
        ({"users": 1}, "on /dev/md127, it has a signature of ext4"),
    ],
)
def test_what_somebody_may_have_taken_for_theirs_stays(
    left: dict[str, object], monkeypatch: pytest.MonkeyPatch, change: dict[str, object], why: str
) -> None:
    left |= change
    if "members" in change:
        monkeypatch.setattr(own_array, "_members", members_of(["vda", "vdb"]))
        monkeypatch.setattr(Path, "iterdir", lambda _self: iter(()))
    removal = own_array.remove_left(UUID, LEFT_ON)
    assert not (left["stopped"])
    assert not (removal.removed)
    assert f"since {why}" in removal.failed[0]
    assert "`mdadm --zero-superblock /dev/vda /dev/vdb" in removal.failed[0]


@pytest.fixture
def came_back(monkeypatch: pytest.MonkeyPatch, left: dict[str, object]) -> dict[str, object]:
    """A disk that had failed while the superblocks of the others were zeroed."""
    left |= {"arrays": []}
    monkeypatch.setattr(own_array, "_members", members_of(["vdb"]))
    monkeypatch.setattr(own_array, "cannot_run", lambda members, _uuid: members == ["vdb"])
    monkeypatch.setattr(own_array, "is_unwritten", lambda *_: False)
    monkeypatch.setattr(own_array, "_now_called", lambda _, disks, _rebooted: (list(disks), {}))
    monkeypatch.setattr(Path, "iterdir", lambda _self: iter(()))
    return left


@pytest.mark.usefixtures("came_back")
def test_a_disk_that_failed_and_came_back_is_blank_again_after_a_restore() -> None:
    removal = own_array.remove_left(UUID, LEFT_ON, removing=True)
    assert removal.removed == ["the superblock on /dev/vdb"]
    assert removal.failed == []


@pytest.mark.parametrize(
    ("attribute", "value", "how"),
    [
        ("cannot_run", False, {"removing": True}),
        ("cannot_run", True, {"removing": False}),
        ("_now_called", (["vda", "vdb"], {"vdc": "No such device"}), {"removing": True}),
        ("cannot_run", True, {"removing": True, "rebooted": True}),
    ],
    ids=["can run", "was whole", "absent", "unknown"],
)
def test_one_of_which_that_is_not_proven_stays_and_the_command_is_said(
    came_back: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    attribute: str,
    value: object,
    how: dict[str, bool],
) -> None:
    monkeypatch.setattr(own_array, attribute, lambda *_: value)
    removal = own_array.remove_left(UUID, LEFT_ON, **how)
    assert not removal.removed
    assert (
        "If nobody needs what is on it, remove it with `mdadm --zero-superblock /dev/vdb`."
        in removal.failed[-1]
    )
    assert ("Or assemble" in removal.failed[-1]) == (attribute == "_now_called")


@pytest.mark.parametrize(
    ("level", "layout", "disks", "members", "can"),
    [
        (5, 2, 3, 1, False),
        (5, 2, 3, 2, True),
        (4, 0, 2, 1, True),
        (6, 2, 4, 1, False),
        (6, 2, 4, 2, True),
        (1, 0, 3, 1, True),
        (10, 0x102, 4, 1, False),
        (10, 0x102, 4, 2, True),
        (10, 0x201, 3, 1, False),
        (10, 0x102, 2, 1, True),
        (0, 0, 0, 1, True),
    ],
)
def test_how_few_members_an_array_can_be_run_with(
    level: int,
    layout: int,
    disks: int,
    members: int,
    can: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block = bytearray(superblock())
    struct.pack_into("<iI", block, AT_BYTES + LEVEL_AT, level, layout)
    struct.pack_into("<I", block, AT_BYTES + DISKS_AT, disks)
    names = [f"disk{number}" for number in range(members)]
    for name in names:
        (tmp_path / name).write_bytes(block)
    monkeypatch.setattr(own_superblock, "node", lambda disk: str(tmp_path / disk))
    monkeypatch.setattr(own_superblock.os, "O_DIRECT", 0)
    assert own_superblock.cannot_run(names, UUID) is not can
    assert not own_superblock.cannot_run([*names, "gone"], UUID)
    assert not own_superblock.cannot_run(names, UUID[::-1])
    assert not own_superblock.cannot_run([], UUID)


@pytest.mark.parametrize(("events", "unwritten"), [((0, 0), True), ((0, 1), True), ((1, 2), False)])
def test_an_array_to_which_nothing_was_written_is_known(
    events: tuple[int, ...], unwritten: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, count in enumerate(events):
        block = bytearray(superblock())
        struct.pack_into("<Q", block, AT_BYTES + own_superblock.EVENTS_AT, count)
        (tmp_path / f"disk{number}").write_bytes(block)
    names = ["disk0", "disk1"]
    monkeypatch.setattr(own_superblock, "node", lambda disk: str(tmp_path / disk))
    monkeypatch.setattr(own_superblock.os, "O_DIRECT", 0)
    assert own_superblock.is_unwritten(names, UUID) is unwritten
    assert not own_superblock.is_unwritten([*names, "gone"], UUID)
    assert not own_superblock.is_unwritten(names, UUID[::-1])
    assert not own_superblock.is_unwritten([], UUID)


def members_of(found: list[str]) -> Callable[..., object]:
    return lambda _uuid, disks: ([disk for disk in found if disk in disks], {})


@pytest.mark.parametrize("change", [{}, {"content": "it has a signature of ext4"}, {"users": 1}])
def test_its_maker_removes_it_unless_somebody_has_put_something_on_it(
    left: dict[str, object], change: dict[str, object]
) -> None:
    """In a moment when it was not held, as one that tries to make a filesystem until it can."""
    left |= change
    removal = own_array.remove(UUID, list(LEFT_ON))
    assert bool(left["stopped"]) == (not change)
    assert bool(removal.removed) == (not change)
    if change:
        assert removal.failed == [
            "/dev/md127 stays, since on /dev/md127, it has a signature of ext4"
        ]
