"""What may lie on a device, an array or a disk, each for real, and must not be written over."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from guest import wait_until

from autotune.lab.guest.system import load_modules
from autotune.system.signature import BCACHEFS, BCACHEFS_AT, GPT

FOLDER = Path("/mnt/here")
KEY = Path("/tmp/key")
MOUNT_S = 6.0


def link_to(device: str) -> Path:
    """Another name of the device."""
    link = Path(f"/tmp/link-to-{Path(device).name}")
    if not link.is_symlink():
        link.symlink_to(device)
    return link


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


def mount(device: object) -> None:
    """Until all is written that follows from it: on Linux 6.12 some blocks come seconds later."""
    sh("mount", device, FOLDER)
    time.sleep(MOUNT_S)


@contextlib.contextmanager
def signature_of_ext4(device: str) -> Iterator[None]:
    make_ext4(device)
    yield


@contextlib.contextmanager
def mounted_ext4(device: str) -> Iterator[None]:
    make_ext4(device)
    mount(device)
    with undone("umount", FOLDER):
        yield


@contextlib.contextmanager
def mounted_through_a_symlink(device: str) -> Iterator[None]:
    link = link_to(device)
    make_ext4(link)
    mount(link)
    with undone("umount", FOLDER):
        yield


@contextlib.contextmanager
def mounted_in_another_namespace(device: str) -> Iterator[None]:
    make_ext4(device)
    script = f"mount -o ro,noload {device} {FOLDER} && echo mounted && read line"
    command = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"mounted\n"
        # Only the exclusive open can know, so no signature is left to find either.
        hide_signature(device)
        yield
        process.stdin.close()


def hide_signature(device: str) -> None:
    with Path(device).open("r+b") as file:
        file.seek(1024)
        file.write(bytes(1024))


@contextlib.contextmanager
def logical_volume(device: str) -> Iterator[None]:
    sh("pvcreate", "-q", "-ff", "-y", device)
    sh("vgcreate", "-q", "shelf", device)
    sh("lvcreate", "-q", "-y", "-W", "n", "-Z", "n", "-n", "home", "-L", "16M", "shelf")
    with undone("vgremove", "-q", "-f", "shelf"):
        yield


@contextlib.contextmanager
def physical_volume(device: str) -> Iterator[None]:
    sh("pvcreate", "-q", "-ff", "-y", device)
    with undone("pvremove", "-q", "-ff", "-y", device):
        yield


@contextlib.contextmanager
def swap(device: str) -> Iterator[None]:
    sh("mkswap", device)
    sh("swapon", device)
    with undone("swapoff", device):
        yield


@contextlib.contextmanager
def encrypted(device: str) -> Iterator[None]:
    KEY.write_bytes(b"k" * 32)
    cost = ("--pbkdf", "pbkdf2", "--pbkdf-force-iterations", "1000")
    sh("cryptsetup", "luksFormat", "-q", *cost, "--key-file", KEY, device)
    sh("cryptsetup", "open", "--key-file", KEY, device, "vault")
    with undone("cryptsetup", "close", "vault"):
        yield


@contextlib.contextmanager
def linear(device: str) -> Iterator[None]:
    sh("dmsetup", "create", "plain", "--table", f"0 2048 linear {device} 0")
    with undone("dmsetup", "remove", "plain"):
        yield


@contextlib.contextmanager
def partition_table(device: str) -> Iterator[None]:
    sh("sfdisk", "-q", "--no-reread", device, data=b"label: gpt\n")
    yield


@contextlib.contextmanager
def partition(device: str) -> Iterator[None]:
    sh("sfdisk", "-q", device, data=b"label: dos\n, 16M\n")
    name = Path(device).name
    wait_until(lambda: any(Path("/sys/block", name).glob(f"{name}*/partition")), 10, "it")
    yield
    sh("sfdisk", "-q", "--delete", device)


@contextlib.contextmanager
def member_of_another_array(device: str) -> Iterator[None]:
    create = ("mdadm", "--create", "/dev/md9", "--run", "--level=1", "--raid-devices=2")
    sh(*create, "--metadata=1.2", device, "missing")
    with undone("mdadm", "--stop", "/dev/md9"):
        yield


@contextlib.contextmanager
def held_by_a_process(device: str) -> Iterator[None]:
    descriptor = os.open(device, os.O_RDONLY | os.O_EXCL)
    yield
    os.close(descriptor)


@contextlib.contextmanager
def opened_by_a_program(device: str) -> Iterator[None]:
    command = ("sh", "-c", f"exec 3<>{device}; echo open; read line")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == b"open\n"
        yield
        process.stdin.close()


@contextlib.contextmanager
def opened_before_a_chroot(device: str) -> Iterator[None]:
    """By a program with mounts of its own, as a service's, none of which is in its new root."""
    code = (
        f"import os; file = open({device!r}, 'r+b'); os.chroot('/var/empty'); "
        "print('open', flush=True); input()"
    )
    Path("/var/empty").mkdir(exist_ok=True)
    command = ("unshare", "--mount", sys.executable, "-c", code)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.readline() == b"open\n"
        yield
        process.communicate(b"\n")


@contextlib.contextmanager
def loop_device(device: str) -> Iterator[None]:
    sh("losetup", "-o", 1 << 20, "/dev/loop0", device)
    with undone("losetup", "-d", "/dev/loop0"):
        yield


@contextlib.contextmanager
def loop_device_by_a_name_that_is_gone(device: str) -> Iterator[None]:
    """As one of a container's leads nowhere outside of it."""
    number = Path(device).stat().st_rdev
    sh("mknod", "/run/gone", "b", os.major(number), os.minor(number))
    sh("losetup", "-o", 1 << 20, "/dev/loop0", "/run/gone")
    Path("/run/gone").unlink()
    with undone("losetup", "-d", "/dev/loop0"):
        yield


@contextlib.contextmanager
def store_of_the_scsi_target(device: str, kind: str, words: str) -> Iterator[None]:
    """iSCSI, Fibre Channel and vhost-scsi serve these to other machines."""
    load_modules(("target_core_file", "target_core_iblock"))
    config = Path("/sys/kernel/config")
    if not Path("/sys/module/target_core_mod").exists():
        pytest.skip("this kernel has no SCSI target")
    if not config.is_mount():
        sh("mount", "-t", "configfs", "none", config)
    store = config / f"target/core/{kind}_0/disk"
    store.mkdir(parents=True)
    (store / "control").write_text(words.format(device))
    (store / "enable").write_text("1")
    with undone("rmdir", store, store.parent):
        yield


def served_as_a_file(device: str) -> contextlib.AbstractContextManager[None]:
    return store_of_the_scsi_target(device, "fileio", "fd_dev_name={}")


def served_as_a_device(device: str) -> contextlib.AbstractContextManager[None]:
    return store_of_the_scsi_target(device, "iblock", "udev_path={}")


@contextlib.contextmanager
def written(device: str, position: int, data: bytes) -> Iterator[None]:
    """Bytes at a place counted from the start, or from the end if below 0."""
    with Path(device).open("r+b", buffering=0) as file:
        place = file.seek(position, os.SEEK_SET if position >= 0 else os.SEEK_END)
        file.write(data)
        yield
        file.seek(place)
        file.write(bytes(len(data)))


@contextlib.contextmanager
def metadata_of_a_thin_pool(device: str) -> Iterator[None]:
    """By dmsetup alone: LVM has it inside of a volume."""
    load_modules(("dm-thin-pool",))
    # Closed again each time: what the kernel writes below a cache of pages is not seen in that.
    with written(device, 0, bytes(4096)):
        pass
    sh("dmsetup", "create", "data", "--table", "0 65536 zero")
    with undone("dmsetup", "remove", "data"):
        pool = f"0 65536 thin-pool {device} /dev/mapper/data 128 0"
        sh("dmsetup", "create", "pool", "--table", pool)
        sh("dmsetup", "remove", "pool")
    yield
    with written(device, 0, bytes(4096)):
        pass


def signature_of_bcachefs(device: str) -> contextlib.AbstractContextManager[None]:
    return written(device, BCACHEFS_AT, BCACHEFS)


def copy_of_a_partition_table(device: str) -> contextlib.AbstractContextManager[None]:
    return written(device, -512, GPT)


def partition_table_without_an_mbr(
    device: str,
) -> contextlib.AbstractContextManager[None]:
    return written(device, 512, GPT)


STACKS: dict[Callable[[str], contextlib.AbstractContextManager[None]], str] = {
    signature_of_ext4: "it has a signature of ext4",
    mounted_ext4: "{device} is mounted on /mnt/here",
    mounted_through_a_symlink: "{device} is mounted on /mnt/here",
    mounted_in_another_namespace: "the kernel says that it is in use",
    logical_volume: "the lvm device shelf-home lies on it",
    physical_volume: "it has a signature of LVM2_member",
    swap: "it holds the swap space",
    encrypted: "the crypt device vault lies on it",
    linear: "the dm device plain lies on it",
    partition_table: "it has a partition table (gpt)",
    partition: "the partition device {partition} lies on it",
    member_of_another_array: "the md device md9 lies on it",
    held_by_a_process: "the kernel says that it is in use",
    opened_by_a_program: "has it open",
    opened_before_a_chroot: "has it open",
    loop_device: "the loop device loop0 lies on it",
    loop_device_by_a_name_that_is_gone: "the loop device loop0 lies on it",
    served_as_a_file: "the store fileio_0/disk of the kernel's SCSI target lies on it",
    served_as_a_device: "the store iblock_0/disk of the kernel's SCSI target lies on it",
    signature_of_bcachefs: "it has a signature of bcachefs",
    metadata_of_a_thin_pool: "it has the metadata of a device-mapper target (dm-thin)",
    partition_table_without_an_mbr: "it has a partition table (gpt) without its MBR",
    copy_of_a_partition_table: "it has the copy of a partition table (gpt) at its end",
}
"""How each is named where it is refused; `text` fills in the device."""


def text(stack: Callable[[str], contextlib.AbstractContextManager[None]], device: str) -> str:
    """What a refusal says of it."""
    name = Path(device).name
    partition = f"{name}p1" if name[-1].isdigit() else f"{name}1"
    return STACKS[stack].format(device=device, partition=partition)
