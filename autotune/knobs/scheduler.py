"""scheduler: how each member's disk orders its requests."""

from pathlib import Path

from autotune.knobs.base import PhaseKind, disk_files, on_every_disk
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sysfs import Write

NONE = "none"
NAMES = (NONE, "mq-deadline", "kyber", "bfq")
"""Those that Linux has had since 5.0."""


class Scheduler:
    """How each member's disk orders its requests; the same for all members.

    A change resets `nr_requests` and the scheduler's own settings (`iosched/`), and `bfq` turns
    write-back throttling (`wbt_lat_usec`) off. So these files are saved with it. After it
    `nr_requests` is set again, and of the scheduler that was found its own settings, too.
    """

    # Members that differ read as "bfq,none,…". Seen on 6.1.176: 500 requests became 64 with none,
    # then 128. Throttling: kernel block/bfq-iosched.c.
    name = "scheduler"
    file = "queue/scheduler"
    unit = ""
    ordered = False
    hazards = (
        "A change resets nr_requests and the scheduler's own settings, which are set again after "
        "it.",
        "The queue belongs to the whole disk: other partitions and arrays on it are affected, too.",
        "It is left as found where control groups have weights for a disk under bfq "
        "(`IODeviceWeight=` of systemd), which the kernel forgets with bfq. An exported rule does "
        "not look for them.",
    )

    def applies(self, array: Array) -> bool:
        return on_every_disk(array, "queue/scheduler") and len(offered(array)) > 1

    def read(self, array: Array) -> Value:
        values = [sysfs.value(path) for path in disk_files(array, "queue/scheduler")]
        return values[0] if len(set(values)) == 1 else ",".join(values)

    def default(self, array: Array) -> Value | None:
        """`mq-deadline` for disks with one hardware queue, else `none`; udev rules of the
        distribution may choose another"""
        # Kernel block/elevator.c.
        queues = {len(list(hardware_queues(array, disk))) for disk in array.disks}
        if len(queues) != 1:
            return None
        wanted = "mq-deadline" if queues == {1} else NONE
        return wanted if wanted in offered(array) else NONE

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return offered(array)

    def legal(self, array: Array) -> str:
        return " ".join(offered(array))

    def impossible(self, value: Value) -> str | None:
        """Of names, there may be new ones."""
        return None if isinstance(value, str) else f"scheduler must be a name, not {value}."

    def valid(self, array: Array, value: Value) -> str | None:
        names = str(value).split(",")
        if len(names) not in (1, len(array.disks)):
            return f"{value} names {len(names)} schedulers for {len(array.disks)} disks."
        known = offered(array)
        for name in names:
            if name not in known:
                return f"The disks of {array.device} offer {', '.join(known)}, not {name}."
        return None

    def paths(self, array: Array) -> tuple[Path, ...]:
        files = (f"queue/{file}" for file in ("scheduler", "nr_requests", "wbt_lat_usec"))
        found = [path for file in files for path in disk_files(array, file)]
        # A queue that has no throttling keeps the file but fails to read it.
        there = [path for path in found if sysfs.read_or(path, "") != ""]
        own = [write.path for member in array.members for write in member.scheduler]
        return tuple(dict.fromkeys([*there, *own]))

    def writes(self, array: Array, value: Value) -> list[Write]:
        writes = []
        for disk, name in by_disk(array, value).items():
            queue = array.root / "sys/block" / disk / "queue"
            writes.append(Write(queue / "scheduler", name))
            found = next(member for member in array.members if member.disk == disk)
            length, depth = found.nr_requests, queue_depth(array, disk)
            if length is not None and name == NONE and depth is not None:
                length = min(length, depth)
            if length is not None:
                writes.append(Write(queue / "nr_requests", str(length)))
            back = Write(queue / "scheduler", name) in found.scheduler
            if back and sysfs.value(queue / "scheduler") != name:
                writes += found.scheduler[1:]
        return writes

    def ram_bytes(self, array: Array, value: Value) -> int:
        return 0

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.reads or phase.writes or phase.checks


def offered(array: Array) -> tuple[str, ...]:
    """The schedulers that every member's disk offers, by name."""
    offers = [
        set(sysfs.read_or(path, "").replace("[", "").replace("]", "").split())
        for path in disk_files(array, "queue/scheduler")
    ]
    return tuple(sorted(set.intersection(*offers))) if offers else ()


def by_disk(array: Array, value: Value | None) -> dict[str, str]:
    """The scheduler of each disk under a value of the knob; with None, the present one."""
    if value is None:
        names = [sysfs.value(path) for path in disk_files(array, "queue/scheduler")]
    else:
        names = str(value).split(",")
    if len(names) == 1:
        names *= len(array.disks)
    return dict(zip(array.disks, names, strict=True))


def hardware_queues(array: Array, disk: str) -> list[Path]:
    """The folders of a disk's hardware queues."""
    return _queues(array.root / "sys/block" / disk)


def queue_depth(array: Array, disk: str) -> int | None:
    """The requests that the hardware takes at once: the limit of `nr_requests` with none."""
    return _depth(array.root / "sys/block" / disk)


def requests_after_switch(folder: Path, scheduler: str) -> int | None:
    """What a switch to a scheduler makes of `nr_requests` of the disk with this folder."""
    # Kernel block/elevator.c: elevator_init_mq, elevator_disable; 128 is BLKDEV_DEFAULT_RQ.
    depth = _depth(folder)
    if depth is None or scheduler == NONE:
        return depth
    return 2 * min(depth, 128)


def _depth(folder: Path) -> int | None:
    counts = [sysfs.read_or(queue / "nr_tags", "") for queue in _queues(folder)]
    return min((int(count) for count in counts if count.isdigit()), default=None)


def _queues(folder: Path) -> list[Path]:
    return [path for path in (folder / "mq").glob("*") if path.is_dir()]
