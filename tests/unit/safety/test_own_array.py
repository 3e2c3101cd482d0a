"""Arrays of ours: known by the journal before they are made, by their superblock after, and removed
by whoever restores. With real arrays: `tests/lab/guest_design.py`."""

import errno
import json
import os
import subprocess
from collections.abc import Collection
from pathlib import Path

import pytest

from autotune.safety import own_array
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.own_array import AT_BYTES, DATA_AT, MAGIC, UUID_AT, Removal
from autotune.safety.restore import restore

UUID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    found = new_journal(tmp_path / "journal/a.jsonl", UUID, "/dev/md127", ())
    found.making(["vda", "vdb"])
    return found


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Collection[str]]]:
    """What is asked to be removed, and never is."""
    calls: list[tuple[str, Collection[str]]] = []

    def remove(uuid: str, disks: Collection[str] = (), left_alone: bool = False) -> Removal:
        # Somebody may have taken it for theirs.
        assert left_alone
        calls.append((uuid, disks))
        return Removal(["/dev/md127"], ["the superblock of /dev/vdb cannot be zeroed: busy"])

    monkeypatch.setattr(own_array, "remove", remove)
    return calls


def test_a_restore_removes_what_the_journal_announces_and_keeps_it_until_all_is_gone(
    journal: Journal, asked: list[tuple[str, Collection[str]]]
) -> None:
    loaded = Journal.load(journal.path)
    assert loaded.record.making == ["vda", "vdb"]
    outcome = restore(loaded)
    assert asked == [(UUID, ["vda", "vdb"])]
    assert outcome.removed == ["/dev/md127"]
    assert not outcome.complete
    assert journal.path.exists()


def test_after_a_reboot_they_are_looked_for_on_every_disk(
    journal: Journal, asked: list[tuple[str, Collection[str]]]
) -> None:
    lines = journal.path.read_text().splitlines()
    head = {**json.loads(lines[0]), "boot": "another", "started_s": 1.0, "kernel": ""}
    journal.path.write_text("\n".join([json.dumps(head), *lines[1:]]) + "\n")
    assert restore(Journal.load(journal.path)).rebooted
    assert asked == [(UUID, ())]


def test_without_arrays_of_ours_nothing_is_looked_for(
    tmp_path: Path, asked: list[tuple[str, Collection[str]]]
) -> None:
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
        assert own_array._is_ours(descriptor, UUID) is ours
    finally:
        os.close(descriptor)


def test_what_udev_begins_again_meanwhile_is_stopped_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "cciss/disk"
    disk.parent.mkdir()
    disk.write_bytes(bytes(2 * AT_BYTES))
    begun, opened, opens = ["md127"], [], os.open

    def while_it_is_held(path: str, *more: int) -> int:
        opened.append(path)
        if begun:
            raise OSError(errno.EBUSY, "Device or resource busy")
        return opens(disk, os.O_RDWR)

    monkeypatch.setattr(own_array, "LOOK_S", 0.0)
    monkeypatch.setattr(own_array, "_arrays", lambda _uuid, _members: list(begun))
    monkeypatch.setattr(own_array, "_stop", lambda name: begun.remove(name) or "")
    monkeypatch.setattr(own_array.os, "open", while_it_is_held)
    assert own_array._zero("cciss!disk", UUID) == ""
    assert not begun
    assert opened == ["/dev/cciss/disk"] * 2


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
        (tmp_path / name).mkdir()
    monkeypatch.setattr(own_array, "BLOCK", tmp_path)
    monkeypatch.setattr(own_array, "_bears", bears)
    monkeypatch.setattr(own_array, "_arrays", lambda *_: [])
    monkeypatch.setattr(own_array, "_zero", lambda *_: "")
    removal = own_array.remove(UUID, ["vda", "vdb"])
    zeroed = [f"the superblock on /dev/{disk}" for disk in ("vda", back_as) if disk]
    assert removal.removed == zeroed
    assert bool(removal.failed) == (not back_as)
    assert all("whether /dev/vdb has" in text for text in removal.failed)
    # After a reboot every device is looked at, and many cannot be read.
    assert own_array.remove(UUID).failed == []


def test_an_array_with_something_on_it_stays_with_its_superblocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[str] = []
    monkeypatch.setattr(own_array, "_members", lambda _uuid, disks: (list(disks), {}))
    monkeypatch.setattr(own_array, "_arrays", lambda _uuid, _members: ["md126", "md127"])
    monkeypatch.setattr(own_array, "_content", lambda name: "ext4" if name == "md127" else "")
    monkeypatch.setattr(own_array, "_stop", lambda name: stopped.append(name) or "")
    monkeypatch.setattr(own_array, "_zero", lambda disk, _uuid: stopped.append(disk) or "")
    assert own_array.remove(UUID, ["vda"], left_alone=True).failed == ["ext4"]
    assert not stopped
    assert own_array.remove(UUID, ["vda"]).removed
    assert stopped == ["md126", "md127", "vda"]


@pytest.mark.parametrize(("sectors", "stays"), [("0", False), ("8", True)])
def test_an_array_whose_content_cannot_be_seen_stays_unless_it_was_only_begun(
    sectors: str, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "md_gone").mkdir()
    (tmp_path / "md_gone/size").write_text(f"{sectors}\n")
    monkeypatch.setattr(own_array, "BLOCK", tmp_path)
    said = own_array._content("md_gone")
    assert ("cannot be seen what is on it" in said) is stays


@pytest.mark.parametrize(("magic", "stays"), [(b"\x53\xef", True), (b"\0\0", False)])
def test_a_stopped_array_with_a_filesystem_on_it_stays(
    magic: bytes, stays: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a member's data begin, as its superblock says. A plain file stands for the disk."""
    data_at, disk = 1 << 20, tmp_path / "disk"
    content = bytearray(4 << 20)
    content[AT_BYTES + DATA_AT : AT_BYTES + DATA_AT + 8] = (data_at // 512).to_bytes(8, "little")
    disk.write_bytes(content)
    subprocess.run(["mkfs.ext4", "-q", "-F", "-E", f"offset={data_at}", disk, "2M"], check=True)
    with disk.open("r+b") as file:
        file.seek(data_at + 1024 + 0x38)
        file.write(magic)
    monkeypatch.setattr(own_array, "_node", lambda _disk: str(disk))
    monkeypatch.setattr(own_array, "_members", lambda _uuid, disks: (list(disks), {}))
    monkeypatch.setattr(own_array, "_arrays", lambda *_: [])
    monkeypatch.setattr(own_array, "_zero", lambda *_: "")
    removal = own_array.remove(UUID, ["vda"], left_alone=True)
    assert bool(removal.failed) is stays
    assert not stays or "begin, it has a signature of ext4" in removal.failed[0]
