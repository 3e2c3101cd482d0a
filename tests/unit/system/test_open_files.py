"""What programs have open, as a fake /proc has it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autotune.system import file_tables, inode, open_files
from autotune.system.process import stat_words

LOCAL = "21 20 0:6 / /dev rw - devtmpfs udev rw\n"
WAITING = (
    "31 20 0:41 / /mnt/a\\040b rw - fuse.sshfs far rw\n"
    "32 20 0:42 / /mnt/nfs\rx rw - nfs4 far:/x rw\n"
    "33 31 8:1 / /mnt/a\\040b/disk rw - ext4 /dev/sda1 rw\n"
    "34 20 8:2 / /mnt/cluster rw - gfs2 /dev/sdb rw\n"
    "41 20 0:51 / /mnt/o rw - overlay o rw,lowerdir=/var/a:/var/b,upperdir=/mnt/a\\040b/u\n"
    "42 20 0:52 / /mnt/p rw - overlay o rw,lowerdir=/var/a,upperdir=/var/u,workdir=/var/w\n"
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


def test_what_asks_others_though_it_is_told_not_to_is_left_out(proc: Path) -> None:
    """All others are there, those of a mount that nobody sees any more among them."""
    process(proc / "self", LOCAL + WAITING)
    thread = proc / "7/task/7"
    process(thread, LOCAL, local=21, fuse=31, cluster=34, gone=99)
    # It may wait for its program to tell what it is about.
    (thread / "fd/epoll").symlink_to("anon_inode:[eventpoll]")
    found = {
        pid: sorted(file.name for file in files or ()) for pid, files in open_files.open_files()
    }
    assert found == {7: ["fuse", "gone", "local"]}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives up its rights")
def test_what_must_not_be_looked_at_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    look = (
        "from autotune.system.open_files import open_files; import sys; "
        "print([files for pid, files in open_files() if pid == int(sys.argv[1])])"
    )
    with subprocess.Popen(["setpriv", "--reuid=65534", "sleep", "60"]) as other:
        said = []
        try:
            for words in ((), ("setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-all")):
                command = [*words, sys.executable, "-c", look, str(other.pid)]
                found = subprocess.run(command, capture_output=True, text=True, check=True)
                said.append(found.stdout.strip())
        finally:
            other.kill()
    assert said[0] != "[None]"
    assert said[1] == "[None]"


THREADS = """
import ctypes, os, sys, threading, time
def work():
    if "own" in sys.argv:
        # CLONE_FILES: from here on its files are its own, under the same numbers.
        ctypes.CDLL(None).unshare(0x400)
    os.close(0)
    os.open(sys.argv[1], os.O_RDONLY)
    print("ready", flush=True)
    time.sleep(60)
threading.Thread(target=work).start()
if "ended" in sys.argv:
    ctypes.CDLL(None).pthread_exit(None)
"""


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("how", ["own", "shared", "ended"])
def test_each_thread_may_have_files_of_its_own_and_the_first_may_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, told: bool
) -> None:
    """Whether or not the kernel tells which share theirs."""
    monkeypatch.setattr(open_files, "PROC", Path("/proc"))
    if not told:
        monkeypatch.setattr(file_tables, "_compare", lambda *_: -1)
    file = tmp_path / "file"
    file.touch()
    words = [sys.executable, "-c", THREADS, str(file), how]
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == b"ready\n"
            while how == "ended" and stat_words(Path(f"/proc/{program.pid}"))[0] != "Z":
                time.sleep(0.01)
            (files,) = (files for pid, files in open_files.open_files() if pid == program.pid)
            found = [each for each in files or () if str(each.readlink()) == str(file)]
        finally:
            program.kill()
    assert len(found) == (2 if how == "shared" and not told else 1)


def test_a_user_with_thousands_of_threads_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has files of its own, or those of another one; some end meanwhile."""
    count, asked = 4000, 0

    def compare(one: int, other: int) -> int:
        nonlocal asked
        asked += 1
        order = [(each * 7919) % (count // 2) for each in (one, other)]
        if other % 100 == 0:
            return -1
        return 0 if order[0] == order[1] else 1 + (order[0] > order[1])

    monkeypatch.setattr(file_tables, "_compare", compare)
    tables = file_tables.FileTables()
    new = [thread for thread in range(count) if tables.add(thread)]
    assert set(range(count // 2)) <= set(new)
    assert len(new) < count // 2 + count // 10
    assert asked < 14 * count


def test_what_is_known_of_an_open_file_is_what_stat_says(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file, Path("/dev/null").open() as node:
        for opened in (file, node):
            status = os.fstat(opened.fileno())
            found = inode.known(Path(f"/proc/self/fd/{opened.fileno()}"))
            assert (found.mode, found.number) == (status.st_mode, status.st_ino)
            assert (found.stands_for, found.device) == (status.st_rdev, status.st_dev)
    with pytest.raises(FileNotFoundError):
        inode.known(tmp_path / "gone")


@pytest.mark.parametrize(
    ("place", "waits"),
    [
        ("/mnt/a b/image", True),
        ("/mnt/a b", True),
        ("/mnt/nfs\rx/image", True),
        ("/mnt/a b/disk/image", False),
        ("/mnt/a", False),
        ("/mnt/o/image", True),
        ("/mnt/p/image", False),
        ("/dev/md0", False),
    ],
)
def test_what_lies_on_such_a_filesystem_is_known_by_its_place(
    proc: Path, place: str, waits: bool
) -> None:
    process(proc / "self", LOCAL + WAITING)
    assert open_files.may_wait(Path(place)) is waits
