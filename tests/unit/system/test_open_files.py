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
        (proc / name / "ns").mkdir()
        (proc / name / "ns/mnt").symlink_to("mnt:[4026531841]")
        (proc / name / "root").symlink_to(root)
    found = {pid: [file.name for file in files] for pid, files in open_files.open_files()}
    assert found == {7: ["local"], 8: ["given"]}


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
