"""What must keep a raw array from being written to, each for real, on raid6-hdd without a
filesystem; `test_run.py` runs this there."""

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from guest import autotune, autotune_json, knob_files, wait_until

from autotune.preflight.raw_device import BCACHEFS, BCACHEFS_AT, GPT, refuse_if_used
from autotune.system.array import find_array

DEVICE = "/dev/md0"
LINK = Path("/tmp/link-to-md0")
FOLDER = Path("/mnt/here")
KEY = Path("/tmp/key")


def sh(*words: object, data: bytes | None = None) -> None:
    done = subprocess.run(list(map(str, words)), input=data, check=False, capture_output=True)
    assert done.returncode == 0, done.stderr.decode() or done.stdout.decode()


@contextlib.contextmanager
def undone(*words: object) -> Iterator[None]:
    try:
        yield
    finally:
        sh(*words)


def make_ext4(device: object) -> None:
    """One that writes nothing by itself once it is mounted."""
    sh("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", device)


@contextlib.contextmanager
def signature_of_ext4() -> Iterator[None]:
    make_ext4(DEVICE)
    yield


@contextlib.contextmanager
def mounted_ext4() -> Iterator[None]:
    make_ext4(DEVICE)
    sh("mount", DEVICE, FOLDER)
    with undone("umount", FOLDER):
        yield


@contextlib.contextmanager
def mounted_through_a_symlink() -> Iterator[None]:
    make_ext4(LINK)
    sh("mount", LINK, FOLDER)
    with undone("umount", FOLDER):
        yield


@contextlib.contextmanager
def mounted_in_another_namespace() -> Iterator[None]:
    make_ext4(DEVICE)
    script = f"mount -o ro,noload {DEVICE} {FOLDER} && echo mounted && read line"
    command = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"mounted\n"
        # Only the exclusive open can know, so no signature is left to find either.
        hide_signature()
        yield
        process.stdin.close()


def hide_signature() -> None:
    with Path(DEVICE).open("r+b") as file:
        file.seek(1024)
        file.write(bytes(1024))


@contextlib.contextmanager
def logical_volume() -> Iterator[None]:
    sh("pvcreate", "-q", "-ff", "-y", DEVICE)
    sh("vgcreate", "-q", "shelf", DEVICE)
    sh("lvcreate", "-q", "-y", "-W", "n", "-Z", "n", "-n", "home", "-L", "16M", "shelf")
    with undone("vgremove", "-q", "-f", "shelf"):
        yield


@contextlib.contextmanager
def physical_volume() -> Iterator[None]:
    sh("pvcreate", "-q", "-ff", "-y", DEVICE)
    with undone("pvremove", "-q", "-ff", "-y", DEVICE):
        yield


@contextlib.contextmanager
def swap() -> Iterator[None]:
    sh("mkswap", DEVICE)
    sh("swapon", DEVICE)
    with undone("swapoff", DEVICE):
        yield


@contextlib.contextmanager
def encrypted() -> Iterator[None]:
    KEY.write_bytes(b"k" * 32)
    cost = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")
    sh("cryptsetup", "luksFormat", "-q", *cost, "--key-file", KEY, DEVICE)
    sh("cryptsetup", "open", "--key-file", KEY, DEVICE, "vault")
    with undone("cryptsetup", "close", "vault"):
        yield


@contextlib.contextmanager
def linear() -> Iterator[None]:
    sh("dmsetup", "create", "plain", "--table", f"0 2048 linear {DEVICE} 0")
    with undone("dmsetup", "remove", "plain"):
        yield


@contextlib.contextmanager
def partition_table() -> Iterator[None]:
    sh("sfdisk", "-q", "--no-reread", DEVICE, data=b"label: gpt\n")
    yield


@contextlib.contextmanager
def partition() -> Iterator[None]:
    sh("sfdisk", "-q", DEVICE, data=b"label: dos\n, 16M\n")
    wait_until(lambda: Path("/sys/block/md0/md0p1").exists(), 10, "the partition")
    yield
    sh("sfdisk", "-q", "--delete", DEVICE)


@contextlib.contextmanager
def member_of_another_array() -> Iterator[None]:
    create = ("mdadm", "--create", "/dev/md9", "--run", "--level=1", "--raid-devices=2")
    sh(*create, "--metadata=1.2", DEVICE, "missing")
    with undone("mdadm", "--stop", "/dev/md9"):
        yield


@contextlib.contextmanager
def held_by_a_process() -> Iterator[None]:
    descriptor = os.open(DEVICE, os.O_RDONLY | os.O_EXCL)
    yield
    os.close(descriptor)


@contextlib.contextmanager
def opened_by_a_program() -> Iterator[None]:
    command = ("sh", "-c", f"exec 3<>{DEVICE}; echo open; read line")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"open\n"
        yield
        process.stdin.close()


@contextlib.contextmanager
def loop_device() -> Iterator[None]:
    sh("losetup", "-o", 1 << 20, "/dev/loop0", DEVICE)
    with undone("losetup", "-d", "/dev/loop0"):
        yield


@contextlib.contextmanager
def written(position: int, data: bytes) -> Iterator[None]:
    """Bytes at a place counted from the start, or from the end if below 0."""
    with Path(DEVICE).open("r+b", buffering=0) as file:
        place = file.seek(position, os.SEEK_SET if position >= 0 else os.SEEK_END)
        file.write(data)
        yield
        file.seek(place)
        file.write(bytes(len(data)))


def signature_of_bcachefs() -> contextlib.AbstractContextManager[None]:
    return written(BCACHEFS_AT, BCACHEFS)


def copy_of_a_partition_table() -> contextlib.AbstractContextManager[None]:
    return written(-512, GPT)


STACKS: dict[Callable[[], contextlib.AbstractContextManager[None]], str] = {
    signature_of_ext4: "it has a signature of ext4",
    mounted_ext4: "/dev/md0 is mounted on /mnt/here",
    mounted_through_a_symlink: "/dev/md0 is mounted on /mnt/here",
    mounted_in_another_namespace: "the kernel says that it is in use",
    logical_volume: "the lvm device shelf-home lies on it",
    physical_volume: "it has a signature of LVM2_member",
    swap: "it holds the swap space",
    encrypted: "the crypt device vault lies on it",
    linear: "the dm device plain lies on it",
    partition_table: "it has a partition table (gpt)",
    partition: "the partition device md0p1 lies on it",
    member_of_another_array: "the md device md9 lies on it",
    held_by_a_process: "the kernel says that it is in use",
    opened_by_a_program: "has it open",
    loop_device: "the loop device loop0 lies on it",
    signature_of_bcachefs: "it has a signature of bcachefs",
    copy_of_a_partition_table: "it has the copy of a partition table (gpt) at its end",
}


@pytest.fixture(autouse=True)
def bare() -> Iterator[None]:
    """An array with nothing on it."""
    FOLDER.mkdir(exist_ok=True)
    if not LINK.is_symlink():
        LINK.symlink_to(DEVICE)
    yield
    sh("wipefs", "-q", "-a", "-f", DEVICE)


def digest() -> str:
    """Of the first 16 MiB and the last, read from the disks."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")
    with Path(DEVICE).open("rb") as file:
        first = file.read(16 << 20)
        file.seek(-(1 << 20), os.SEEK_END)
        return hashlib.sha256(first + file.read()).hexdigest()


@pytest.mark.parametrize(
    ("stack", "named"),
    [(mounted_ext4, DEVICE), *((stack, str(LINK)) for stack in STACKS)],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_an_array_in_use_is_refused_by_name_and_not_touched(
    stack: Callable[[], contextlib.AbstractContextManager[None]], named: str, tmp_path: Path
) -> None:
    with stack():
        before, knobs = digest(), knob_files()
        done = autotune("run", named, "--destructive", named, state=tmp_path)
        assert done.returncode == 1, done.stdout
        assert STACKS[stack] in done.stderr
        assert digest() == before
        assert knob_files() == knobs


def test_an_array_with_nothing_on_it_is_not_refused() -> None:
    refuse_if_used(find_array(DEVICE))


@pytest.mark.parametrize("used", [opened_by_a_program, loop_device])
def test_an_array_that_a_program_uses_is_in_use_though_nothing_is_mounted(
    used: Callable[[], contextlib.AbstractContextManager[None]], tmp_path: Path
) -> None:
    """A virtual machine on it, or a database: a run is careful with those too."""
    words = "run", DEVICE, "--dry-run"
    assert not autotune_json(*words, state=tmp_path)["careful"]
    with used():
        assert autotune_json(*words, state=tmp_path)["careful"]
