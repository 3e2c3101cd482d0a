"""What programs have open, as a fake /proc has it."""

from pathlib import Path

import pytest

from autotune.system import open_files

LOCAL = "21 20 0:6 / /dev rw - devtmpfs udev rw\n"
WAITING = (
    "31 20 0:41 / /mnt/a\\040b rw - fuse.sshfs far rw\n"
    "32 20 0:42 / /mnt/nfs\rx rw - nfs4 far:/x rw\n"
    "33 31 8:1 / /mnt/a\\040b/disk rw - ext4 /dev/sda1 rw\n"
)


@pytest.fixture(autouse=True)
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(open_files, "PROC", tmp_path)
    return tmp_path


def process(folder: Path, mounts: str, **opened: int) -> None:
    """One whose files are on mounts of these numbers, by the name of the file."""
    for name in ("fd", "fdinfo"):
        (folder / name).mkdir(parents=True)
    (folder / "mountinfo").write_bytes(mounts.encode())
    for name, mount in opened.items():
        (folder / "fd" / name).symlink_to("/dev/md0")
        (folder / "fdinfo" / name).write_text(f"pos:\t0\nflags:\t02\nmnt_id:\t{mount}\n")


def test_a_file_whose_server_may_not_answer_is_not_asked_about(proc: Path) -> None:
    process(proc / "7", LOCAL + WAITING, local=21, fuse=31, nfs=32, disk=33)
    # It has this from the other one. Of an unmounted filesystem nothing is known.
    process(proc / "8", "", given=21, gone=99)
    found = {pid: sorted(file.name for file in files) for pid, files in open_files.open_files()}
    assert found == {7: ["disk", "local"], 8: ["given"]}


def test_a_process_in_a_root_of_its_own_hides_no_mount(proc: Path) -> None:
    process(proc / "7", LOCAL, local=21)
    process(proc / "8", "", given=21)
    for name, root in (("7", "/"), ("8", "/run/sshd")):
        seen_as(proc / name, "mnt:[1]", root, "user:[1]")
    found = {pid: [file.name for file in files] for pid, files in open_files.open_files()}
    assert found == {7: ["local"], 8: ["given"]}


def seen_as(folder: Path, mounts: str, root: str, users: str) -> None:
    """What decides which mounts a process sees, and who has made them."""
    (folder / "ns").mkdir(parents=True)
    for name, text in (("ns/mnt", mounts), ("root", root), ("ns/user", users)):
        (folder / name).symlink_to(text)


def test_what_anybody_can_mount_over_such_a_filesystem_is_not_asked_about(proc: Path) -> None:
    """An overlay asks those below it."""
    over = (
        "41 20 0:51 / /mnt/o rw - overlay o rw,lowerdir=/var/a:/var/b,upperdir=/mnt/a\\040b/u\n"
        "42 20 0:52 / /mnt/p rw - overlay o rw,lowerdir=/var/a,upperdir=/var/u,workdir=/var/w\n"
    )
    seen_as(proc / "self", "mnt:[1]", "/", "user:[1]")
    process(proc / "self", LOCAL + WAITING + over)
    process(proc / "7", LOCAL + WAITING + over, local=21, on_fuse=41, good=42)
    seen_as(proc / "7", "mnt:[1]", "/", "user:[1]")
    theirs = "51 20 0:61 / /mnt rw - overlay o rw,lowerdir=/f\n52 51 0:62 / /tmp rw - tmpfs t rw\n"
    process(proc / "8", theirs, over=51, memory=52)
    seen_as(proc / "8", "mnt:[2]", "/", "user:[2]")
    found = {pid: sorted(file.name for file in files) for pid, files in open_files.open_files()}
    assert found == {7: ["good", "local"], 8: ["memory"]}


@pytest.mark.parametrize(
    ("place", "waits"),
    [
        ("/mnt/a b/image", True),
        ("/mnt/a b", True),
        ("/mnt/nfs\rx/image", True),
        ("/mnt/a b/disk/image", False),
        ("/mnt/a", False),
        ("/dev/md0", False),
    ],
)
def test_what_lies_on_such_a_filesystem_is_known_by_its_place(
    proc: Path, place: str, waits: bool
) -> None:
    process(proc / "self", LOCAL + WAITING)
    assert open_files.may_wait(Path(place)) is waits
