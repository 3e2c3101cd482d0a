"""stripe_cache_size: how many stripes RAID 4/5/6 keeps in memory to collect writes."""

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from autotune.errors import InfeasibleError
from autotune.knobs.base import ArrayNumber, PhaseKind, ladder, whole
from autotune.problem.setting import Value
from autotune.system import sysfs
from autotune.system.array import Array
from autotune.system.sysfs import Write


class StripeCacheSize(ArrayNumber):
    """How many stripes RAID 4, 5 and 6 keep in memory at least, to collect writes until a whole
    stripe can be written without reading the old data."""

    # Range and default: kernel drivers/md/raid5.c, seen on 6.1.176 (16 and 32769: EINVAL).
    name = "stripe_cache_size"
    unit = "stripes"
    file = "md/stripe_cache_size"
    low, high, kernel_default = 17, 32768, 256
    hazards = (
        "It is a minimum: under load the kernel adds stripes by itself.",
        "If memory runs out while it is raised, the kernel kills the writing process. So it is "
        "raised in steps, and the free memory is looked at before each.",
    )

    def choices(self, array: Array, memory_bytes: int) -> tuple[Value, ...]:
        return tuple(n for n in ladder(64, self.high) if self.ram_bytes(array, n) <= memory_bytes)

    def writes(self, array: Array, value: Value) -> list[Write]:
        """Steps up by doubling, so that growth can be watched and stopped between the steps."""
        step, target, writes = whole(self.path(array)) * 2, int(value), []
        while step < target:
            writes.append(Write(self.path(array), str(step)))
            step *= 2
        return [*writes, Write(self.path(array), str(target))]

    def ram_bytes(self, array: Array, value: Value) -> int:
        """stripes × (one page for each member + one slab object of 224 + 368 × members bytes)"""
        # The object's size is read from /proc/slabinfo where that is there; checked to 0.2 %.
        return int(value) * (_buffer_bytes(array) + _object_bytes(array))

    def moves(self, phase: PhaseKind, quantity: str) -> bool:
        return phase.writes or phase.checks


def shrink(array: Array, store: Callable[[Path, str], None] = sysfs.write) -> None:
    """Take the cache back to its setting, so that a measurement begins where every other does.

    Under load the kernel adds stripes one by one, and gives them back only when memory runs short
    (drivers/md/raid5.c, grow_one_stripe and raid5_cache_scan; seen on 6.1.176: 256 became 888 in
    half a minute, and writes half as fast again). A store of the present value drops what was
    added once the array is idle, but hardly anything under load, when every stripe is busy; so the
    growth within a phase remains. It changes no setting, so there is nothing to put back. A cache
    that is gone or refuses is left to the watch.
    """
    path = array.md / StripeCacheSize.file.removeprefix("md/")
    with contextlib.suppress(InfeasibleError, OSError):
        if path.exists():
            store(path, sysfs.value(path))


def growth_bytes(array: Array, write: Write) -> int:
    """What a store takes of memory, from what the cache holds now; 0 for one of another knob."""
    if write.path.name != StripeCacheSize.name:
        return 0
    now = own_stripes(array) or whole(write.path)
    return max(0, StripeCacheSize().ram_bytes(array, int(write.text) - now))


def grows(array: Array) -> bool:
    """Whether the array has a stripe cache, which the kernel grows under load."""
    return StripeCacheSize().applies(array)


def stripes(array: Array) -> int | None:
    """How many stripes the cache has now, its own growth included; None if that is not told.
    Perhaps with those of another array: how many come or go is told all the same."""
    slab = _slab(array)
    return int(slab[1]) if slab else None


def own_stripes(array: Array) -> int | None:
    """How many there are; None if nobody tells, or those of another array are counted, too. The
    kernel merges caches whose objects are as large (mm/slab_common.c), under the name of the first;
    a stripe's size depends on the number of disks."""
    lines, disks = _slabinfo(array), str(array.raid_disks)
    for cache in (array.root / "sys/block").glob("*/md/stripe_cache_size"):
        md = cache.parent
        as_many = sysfs.read_or(md / "raid_disks", "").split()[:1] == [disks]
        other = md != array.md and as_many
        if other and _line(md.parent.name, sysfs.read_or(md / "level", ""), lines) is None:
            return None
    return stripes(array)


def _buffer_bytes(array: Array) -> int:
    """A stripe's buffers, in whole pages: md/stripe_size per disk (4096, whatever the page)."""
    text = sysfs.read_or(array.md / "stripe_size", "")
    per_disk = int(text) if text.isdigit() else array.page_bytes
    pages = -(-array.raid_disks * per_disk // array.page_bytes)
    return pages * array.page_bytes


def _object_bytes(array: Array) -> int:
    """The size of a stripe's slab object, live ("raid6-md0" on 6.1.176: 1976 on 5 disks of a
    user-mode kernel), else by the formula for x86-64."""
    slab = _slab(array)
    return int(slab[3]) if slab else 224 + 368 * array.raid_disks


def _slab(array: Array) -> list[str] | None:
    """The stripes' line of /proc/slabinfo: name, objects in use, objects, bytes of one."""
    return _line(array.name, array.level, _slabinfo(array))


def _slabinfo(array: Array) -> list[str]:
    return sysfs.read_or(array.root / "proc/slabinfo", "").splitlines()


def _line(name: str, level: str, lines: Iterable[str]) -> list[str] | None:
    """The cache is called "raid6-md0", after a reshape perhaps "raid6-md0-alt"."""
    named = f"{level}-{name}"
    for fields in map(str.split, lines):
        if fields[:1] in ([named], [f"{named}-alt"]) and all(f.isdigit() for f in fields[1:4]):
            return fields if len(fields) > 3 else None
    return None
