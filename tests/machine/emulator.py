"""How QEMU is called: what a machine is made of, and what makes it start soon in emulation."""

import os
from dataclasses import dataclass
from pathlib import Path

DISKS = "bcdef"
"""Four of an array, and a spare one."""
DISK_BYTES_PER_S = 40_000_000
MEMORY_MIB = 1536
CPU = "Nehalem"
"""The oldest that the libraries' wheels start on: less to emulate. With AVX2, as `max` has it,
numpy's `argsort` ends in a segmentation fault in the emulation of QEMU 7.2 (not of 11.1)."""
CHEAP = (
    "quiet systemd.show_status=no mitigations=off panic=-1 "
    # The frequency that is measured of the TSC is wrong where others use the processor too.
    "tsc=unstable clocksource=hpet"
)


@dataclass(frozen=True)
class Disks:
    """What the disks of an array are: how large, and whether they are SCSI disks (sda and so on),
    which have a queue of their own, or virtio's (vdb and so on)."""

    mib: int = 512
    scsi: bool = False


def accelerator() -> str:
    """Emulated where the processor cannot do it: there KVM may be seen and not work."""
    words = Path("/proc/cpuinfo").read_text().split()
    able = {"vmx", "svm"} & {*words} and os.access("/dev/kvm", os.W_OK)
    # Two threads at once make the kernel fall over its own patches of its code, now and then.
    return "kvm" if able else "tcg,thread=single"


def command(
    folder: Path, first: Path, root: str, kernel: Path, initrd: Path, agent: Path, scsi: bool
) -> list[str]:
    """The command of a machine whose disks are in a folder, the `first` beside them; `root` is as
    the kernel is told it, `agent` is the socket of its agent."""
    disks = ["-device", "virtio-scsi-pci"] if scsi else []
    for letter in DISKS:
        how = f"if=none,id={letter}" if scsi else "if=virtio"
        disks += (
            "-drive",
            f"file={folder}/vd{letter}.img,format=raw,{how},cache=writeback,"
            f"throttling.bps-total={DISK_BYTES_PER_S}",
        )
        disks += ["-device", f"scsi-hd,drive={letter}"] if scsi else []
    return [
        *("qemu-system-x86_64", "-accel", accelerator(), "-cpu", CPU, "-smp", "2"),
        *("-m", str(MEMORY_MIB), "-display", "none", "-nic", "none", "-no-reboot"),
        *("-kernel", str(kernel), "-initrd", str(initrd)),
        *("-append", f"root={root} rw console=ttyS0 {CHEAP}"),
        *("-serial", f"file:{folder}/console", "-device", "virtio-serial"),
        *("-drive", f"file={first},format=raw,if=virtio"),
        *disks,
        *("-chardev", f"socket,path={agent},server=on,wait=off,id=agent"),
        *("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"),
    ]
