"""Finds the guest's disks and builds on them what the plan says."""

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from autotune.lab.plan import SHARED, ArrayPlan, FilesystemPlan, GuestPlan

_WAIT_S = 20.0
_SPEED_CHANGE_S = 0.25  # a disk reads its control files every 0.1 s

# No write must come later in the background, where it would disturb a measurement.
_MKFS = {
    "ext4": ("mkfs.ext4", "-qF", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    "xfs": ("mkfs.xfs", "-qfK"),
}


def _run(command: Sequence[str]) -> None:
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise RuntimeError(f"{command[0]} failed: {result.stdout.strip()}")


def _find_disk(index: int) -> str:
    """Return the name of the disk on that socket, once it is there."""
    platform = Path(f"/sys/bus/platform/devices/virtio-uml.{index}")
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        for entry in platform.glob("virtio*/block/*"):
            return entry.name
        time.sleep(0.02)
    raise RuntimeError(f"disk {index} did not come up in {_WAIT_S:.0f} s")


def _create(array: ArrayPlan, disks: Sequence[str]) -> None:
    members = [f"/dev/{disks[index]}" for index in array["members"]]
    redundant = array["level"] != "raid0"
    command = ["mdadm", "--create", f"/dev/{array['name']}", "--run", "--metadata=1.2"]
    command += [f"--level={array['level']}", f"--raid-devices={len(members)}"]
    if redundant:
        # Fresh disks are all zeros, which is consistent at every level: no first resync.
        command += ["--assume-clean", f"--bitmap={'internal' if array['bitmap'] else 'none'}"]
    if array["level"] != "raid1":
        command.append(f"--chunk={array['chunk_kib']}")
    _run([*command, *members])


def _make_filesystem(filesystem: FilesystemPlan) -> None:
    device = f"/dev/{filesystem['array']}"
    _run([*_MKFS[filesystem["kind"]], device])
    Path(filesystem["mount"]).mkdir(parents=True, exist_ok=True)
    _run(["mount", "-t", filesystem["kind"], device, filesystem["mount"]])


def build(plan: GuestPlan) -> None:
    """Create the arrays and the filesystem on fast disks, then let the disks take their time.

    Raise RuntimeError, with what the failing program said.
    """
    disks = [_find_disk(index) for index in range(len(plan["rotational"]))]
    for name, rotational in zip(disks, plan["rotational"], strict=True):
        # To a virtio disk's driver, every disk rotates.
        Path(f"/sys/block/{name}/queue/rotational").write_text(str(int(rotational)))
    for array in plan["arrays"]:
        _create(array, disks)
    if plan["udev"]:
        _run(["udevadm", "settle"])
    if plan["filesystem"]:
        _make_filesystem(plan["filesystem"])
    os.sync()
    for name in disks:
        Path(SHARED, "disks", name, "slowdown").write_text("1\n")
    time.sleep(_SPEED_CHANGE_S)
