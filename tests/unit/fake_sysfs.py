"""Builds trees that look like a machine's /sys, /proc and /dev, and stores values as md does.

The files and their texts are those of a 5-disk RAID6 on Linux 6.1.176.
"""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from autotune.errors import InfeasibleError

UUID = "f6e606b3-8ce3aa59-41c0aa90-d0ab4f9c"
DEPTH = 64
"""The requests that a fake disk takes at once."""
DEPTH_LAGS = True
"""Whether async_depth follows the length of the queue as on 6.1.176."""
SPEED_DEFAULTS = {"sync_speed_min": "1000", "sync_speed_max": "200000"}
PARITY_FILES = {
    "stripe_cache_size": "256",
    "stripe_cache_active": "0",
    "stripe_size": "4096",
    "group_thread_cnt": "0",
    "rmw_level": "1",
    "preread_bypass_threshold": "1",
}


SCHEDULERS_OWN = {
    "none": {},
    "kyber": {"read_lat_nsec": "2000000", "write_lat_nsec": "10000000"},
    "mq-deadline": {
        **{"read_expire": "500", "write_expire": "5000", "writes_starved": "2"},
        **{"fifo_batch": "16", "front_merges": "1", "async_depth": "128"},
    },
    "bfq": {"low_latency": "1", "slice_idle": "8", "slice_idle_us": "8000"},
}
"""What lies in queue/iosched under each scheduler, as a switch to it sets that (6.1.176)."""


class FakeMachine:
    """A file system root with fake disks and arrays."""

    def __init__(self, root: Path, kernel: str = "6.1.176") -> None:
        self.root = root
        self.minor = 0
        self.put("proc/sys/kernel/osrelease", kernel)
        self.put("proc/meminfo", "MemTotal: 8388608 kB\nMemAvailable: 6291456 kB")
        self.put("proc/self/mountinfo", "")
        self.put("proc/swaps", "Filename\tType\tSize\tUsed\tPriority")
        self.put("proc/sys/dev/raid/speed_limit_min", "1000")
        self.put("proc/sys/dev/raid/speed_limit_max", "200000")
        (root / "sys/class/block").mkdir(parents=True)
        for processor in ("cpu0", "cpu1"):
            (root / "sys/devices/system/cpu" / processor).mkdir(parents=True)
        (root / "dev").mkdir()

    def put(self, path: str, text: str) -> Path:
        """Write a file below the root, making its folders."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        return file

    def device(self, name: str, parent: str = "sys/block", sectors: int = 262144) -> str:
        """A block device without a queue; returns its folder below the root."""
        folder = f"{parent}/{name}"
        self.minor += 1
        self.put(f"{folder}/dev", f"8:{self.minor}")
        self.put(f"{folder}/size", str(sectors))
        self.put(f"{folder}/ro", "0")
        for inner in ("holders", "slaves"):
            (self.root / folder / inner).mkdir()
        (self.root / "sys/class/block" / name).symlink_to(self.root / folder)
        (self.root / "dev" / name).touch()
        return folder

    def disk(self, name: str, rotational: bool = True, scheduler: str = "mq-deadline") -> None:
        """A disk whose queue is 64 deep."""
        folder = self.device(name)
        (self.root / folder / "mq/0").mkdir(parents=True)
        self.put(f"{folder}/mq/0/nr_tags", str(DEPTH))
        queue = {
            "rotational": str(int(rotational)),
            "scheduler": _bracketed("mq-deadline kyber bfq none", scheduler),
            "nr_requests": "128" if scheduler != "none" else str(DEPTH),
            "max_sectors_kb": "1280",
            "max_hw_sectors_kb": "4096",
            "read_ahead_kb": "128",
            "wbt_lat_usec": "75000",
            "rq_affinity": "1",
            "iostats": "1",
        }
        for file, text in queue.items():
            self.put(f"{folder}/queue/{file}", text)
        _own_settings(self.root / folder / "queue", scheduler)

    def sata(self, disk: str, host: int) -> None:
        """Make a disk one that queues 32 requests itself."""
        target = f"sys/devices/host{host}/{host}:0:0:0"
        self.put(f"{target}/queue_depth", "32")
        self.put(f"sys/class/scsi_host/host{host}/can_queue", "32")
        (self.root / "sys/block" / disk / "device").symlink_to(self.root / target)

    def partition(self, disk: str, name: str) -> None:
        folder = self.device(name, f"sys/block/{disk}")
        self.put(f"{folder}/partition", "1")

    def array(
        self, name: str = "md0", level: str = "raid6", members: Sequence[str] = (), **files: str
    ) -> None:
        """An idle array of existing devices; `files` are texts below md/ that differ."""
        folder = self.device(name, sectors=780288)
        parity = level in ("raid4", "raid5", "raid6")
        redundant = level != "raid0"
        md = {
            "uuid": UUID,
            "level": level,
            "raid_disks": str(len(members)),
            "chunk_size": "65536",
            "layout": "2" if parity else "0",
            "component_size": "130048",
            "metadata_version": "1.2",
            "array_state": "clean",
            "reshape_position": "none",
            **(PARITY_FILES if parity else {}),
        }
        if redundant:
            md |= {"degraded": "0", "sync_action": "idle", "sync_min": "0", "sync_max": "max"}
            md |= {"mismatch_cnt": "0", "sync_completed": "none", "safe_mode_delay": "0.210"}
            md |= {file: f"{speed} (system)" for file, speed in SPEED_DEFAULTS.items()}
        for file, text in (md | files).items():
            self.put(f"{folder}/md/{file}", text)
        for slot, member in enumerate(members):
            self.put(f"{folder}/md/dev-{member}/state", "in_sync")
            self.put(f"{folder}/md/dev-{member}/slot", str(slot))
            self.hold(member, name)
        queue = {"read_ahead_kb": "384", "optimal_io_size": "196608", "iostats": "1"}
        # On 6.1 an array has these too, and they mean nothing.
        queue |= {"scheduler": "none", "nr_requests": "128"}
        queue |= {"max_sectors_kb": "1024", "max_hw_sectors_kb": "1024"}
        for file, text in queue.items():
            self.put(f"{folder}/queue/{file}", text)
        if parity:
            self.put(
                "proc/slabinfo",
                f"slabinfo - version: 2.1\n{level}-{name} 256 256 1976 8 4 : tunables 0 0 0",
            )

    def hold(self, below: str, above: str) -> None:
        """`above` lies on `below`."""
        holders = self.root / "sys/class/block" / below / "holders"
        (holders / above).symlink_to(self.root / "sys/class/block" / above)
        slaves = self.root / "sys/class/block" / above / "slaves"
        (slaves / below).symlink_to(self.root / "sys/class/block" / below)

    def mapped(self, name: str, uuid: str, label: str, below: str) -> None:
        """A device-mapper device ("dm-0") on another device."""
        folder = self.device(name)
        self.put(f"{folder}/dm/uuid", uuid)
        self.put(f"{folder}/dm/name", label)
        (self.root / "dev/mapper").mkdir(exist_ok=True)
        (self.root / "dev/mapper" / label).symlink_to(f"../{name}")
        self.hold(below, name)

    def mount(
        self,
        name: str,
        where: Path,
        fstype: str = "ext4",
        number: str | None = None,
        options: tuple[str, str] = ("rw,relatime", "rw"),
        root: str = "/",
    ) -> None:
        """`number` is an anonymous device number, as btrfs shows; `options` are those of the mount
        and of the filesystem; `root` is the folder of it that a bind mount shows."""
        number = number or (self.root / "sys/class/block" / name / "dev").read_text().strip()
        line = f"36 25 {number} {root} {where} {options[0]} shared:1 - {fstype} /dev/{name} "
        line += options[1]
        file = self.root / "proc/self/mountinfo"
        file.write_text(file.read_text() + line + "\n")


def raid6(root: Path, level: str = "raid6", disks: int = 5) -> FakeMachine:
    """A machine with one array, md0, on the disks sda, sdb, …"""
    machine = FakeMachine(root)
    names = [f"sd{chr(ord('a') + n)}" for n in range(disks)]
    for name in names:
        machine.disk(name)
    machine.array("md0", level, names)
    return machine


def write(path: Path, text: str, timeout_s: float = 30.0) -> None:
    """Store as the kernel does, refusals and side effects included; stands for `sysfs.write`."""
    if not path.exists():
        raise InfeasibleError(f"{path} does not exist.")
    held = path.read_text().strip()
    queue = path.parent
    if path.name in SPEED_DEFAULTS:
        new = f"{SPEED_DEFAULTS[path.name]} (system)" if text == "system" else f"{text} (local)"
    elif path.name == "scheduler":
        names = re.sub(r"[\[\]]", "", held)
        if text not in names.split():
            raise InfeasibleError(f"EINVAL: {text} in {path}")
        new = _bracketed(names, text)
        if new != held:
            (queue / "nr_requests").write_text(f"{DEPTH if text == 'none' else 128}\n")
            _own_settings(queue, text)
    elif path.name == "nr_requests":
        if "[none]" in (queue / "scheduler").read_text() and int(text) > DEPTH:
            raise InfeasibleError(f"EINVAL: {text} in {path}")
        new = str(max(4, int(text)))
        if new != held and (depth := queue / "iosched/async_depth").exists():
            # A store calls the scheduler before the queue has its new length.
            depth.write_text(f"{held if DEPTH_LAGS else 3 * int(new) // 4}\n")
    elif path.name == "max_sectors_kb":
        new = text
        ahead = queue / "read_ahead_kb"
        # As Linux 6.15 and newer.
        optimal = queue / "optimal_io_size"
        least = max(128, 2 * int(optimal.read_text()) // 1024) if optimal.exists() else 128
        ahead.write_text(f"{max(least, int(ahead.read_text()))}\n")
    elif path.name == "read_ahead_kb":
        new = str(int(text) // 4 * 4)
    elif not _is_valid(path, text):
        raise InfeasibleError(f"EINVAL: {text} in {path}")
    else:
        new = text
    path.write_text(new + "\n")


def _is_valid(path: Path, text: str) -> bool:
    if path.name == "stripe_cache_size":
        return 17 <= int(text) <= 32768
    if path.name == "async_depth" and path.parent.name == "queue":
        # As Linux 7.
        return "[none]" not in (path.parent / "scheduler").read_text()
    return True


def _bracketed(names: str, chosen: str) -> str:
    return " ".join(f"[{name}]" if name == chosen else name for name in names.split())


def _own_settings(queue: Path, scheduler: str) -> None:
    folder = queue / "iosched"
    shutil.rmtree(folder, ignore_errors=True)
    # The kernel has the folder under each scheduler, but for none.
    for file, text in SCHEDULERS_OWN[scheduler].items():
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(text + "\n")
