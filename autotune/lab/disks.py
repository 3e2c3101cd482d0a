"""Simulated disks: one nbdkit process each, joined to the kernel by a storage daemon."""

from collections.abc import Sequence
from pathlib import Path

from autotune.lab.compiler import compile_library
from autotune.lab.processes import Processes
from autotune.lab.scenario import Disk

MODEL_SOURCES = ("disk.c", "hdd.c", "arm.c", "ssd.c", "extents.c")
"""The timing model, which needs nothing but a C compiler."""

SETUP_SLOWDOWN = "0.01"
"""How slow a disk starts out: very fast, until the guest has set up its arrays."""


def compile_model(target: Path, sources: Sequence[str]) -> None:
    """Compile the disk model to a shared library. Raise AutotuneError if the compiler fails."""
    compile_library(target, "disk_model", sources)


def letters(index: int) -> str:
    """Return what the kernel calls the disk: vda, vdb, …"""
    return f"vd{chr(ord('a') + index)}"


def start(processes: Processes, disks: Sequence[Disk], shared: Path) -> list[str]:
    """Start the disks; return the kernel's arguments for them.

    `shared`/disks/vdX then holds each disk's control files, which are read ten times a second:
    `slowdown` (2.0: twice as slow) and `fail` (1: every request fails).
    """
    folder = processes.folder
    compile_model(folder / "disk.so", ("plugin.c", "player.c", *MODEL_SOURCES))
    daemon = ["qemu-storage-daemon"]
    arguments = []
    for index, disk in enumerate(disks):
        name = letters(index)
        spec = disk.spec()
        control = shared / "disks" / name
        control.mkdir(parents=True)
        (control / "slowdown").write_text(SETUP_SLOWDOWN)
        (control / "fail").write_text("0")
        processes.start(
            [
                *("nbdkit", "--foreground", "--threads", "32", "--unix", f"{name}.nbd"),
                *("./disk.so", f"control={control}"),
                *(f"{key}={value}" for key, value in spec.items()),
            ],
            log="disks.log",
        )
        # The daemon waits for nbdkit, so neither needs to be watched here.
        daemon += [
            *("--object", f"iothread,id=thread-{name}", "--blockdev"),
            f"driver=nbd,node-name={name},open-timeout=60,server.type=unix,server.path={name}.nbd",
            "--export",
            f"type=vhost-user-blk,id=export-{name},node-name={name},iothread=thread-{name},"
            f"writable=on,addr.type=unix,addr.path={name}.sock",
        ]
        arguments.append(f"virtio_uml.device={name}.sock:2:{index}")
    processes.start([*daemon, "--pidfile", "daemon.pid"], log="disks.log")
    return arguments
