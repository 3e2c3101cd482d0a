"""Real LVM on /dev/md0, for guest tests."""

import os
import subprocess
from pathlib import Path

from autotune.lab.guest.system import load_modules

LVM = """
activation { udev_sync = 0 udev_rules = 0 }
global { thin_check_executable = "" }
"""


def sh(*words: object) -> str:
    done = subprocess.run(list(map(str, words)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr or done.stdout)
    return done.stdout


def make_group() -> None:
    """The volume group "shelf", on the array."""
    load_modules(("dm-thin-pool",))
    Path("/tmp/lvm").mkdir(exist_ok=True)
    Path("/tmp/lvm/lvm.conf").write_text(LVM)
    os.environ["LVM_SYSTEM_DIR"] = "/tmp/lvm"
    sh("pvcreate", "-q", "-ff", "-y", "/dev/md0")
    sh("vgcreate", "-q", "shelf", "/dev/md0")


def make_volume(name: str, size_mib: int) -> str:
    sh("lvcreate", "-q", "-y", "-W", "n", "-Z", "n", "-n", name, "-L", f"{size_mib}M", "shelf")
    return f"/dev/shelf/{name}"


def make_snapshot(size_mib: int) -> None:
    """The snapshot "backup" of the volume "home"."""
    sh("lvcreate", "-q", "-y", "-s", "-n", "backup", "-L", f"{size_mib}M", "shelf/home")


def make_thin(size_mib: int, *volumes: str) -> None:
    """An overcommitted thin pool with these volumes."""
    sh(
        *("lvcreate", "-q", "-y", "-Z", "n", "--type", "thin-pool", "-n", "pool"),
        *("-L", f"{size_mib}M", "--poolmetadatasize", "8M", "--poolmetadataspare", "n", "shelf"),
    )
    for name in volumes:
        sh("lvcreate", "-q", "-y", "-V", "2200M", "-n", name, "--thinpool", "shelf/pool")


def make_ext4(device: str) -> None:
    """One that writes nothing by itself once it is mounted."""
    quiet = "lazy_itable_init=0,lazy_journal_init=0,nodiscard"
    sh("mkfs.ext4", "-q", "-F", "-E", quiet, "-J", "size=8", device)


def used(device: str) -> str:
    """How much of a snapshot, or of a pool's data, is used: "80/2048", or "Invalid"."""
    status = sh("dmsetup", "status", "--noflush", device).split()
    return status[5] if status[2] == "thin-pool" else status[3]
