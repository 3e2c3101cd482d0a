"""Members that do not fit together, or that lie on the same disk."""

from collections.abc import Iterator
from statistics import median

from autotune.advice import replacing
from autotune.advice.array_facts import ArrayFacts, listed
from autotune.advice.finding import NEW_IS_LOST, FindingKind, Seen
from autotune.quantities import show_rate
from autotune.suggested import set_by_hand
from autotune.system.array import Array, Media, read_array
from autotune.system.blockdev import SECTOR, media_of, number
from autotune.system.programs import UnseenError

SLOW = 0.7
"""A member below this share of the others' speed is slow; disks of a kind differ by less."""
LARGE_SHARE = 0.1
"""An array that has less of a disk, as one for booting, is no load on it."""


def _same_disk(facts: ArrayFacts) -> Iterator[Seen]:
    if not facts.array.redundant:
        return
    for disk in sorted({leaf for member in facts.members for leaf in member.leaves}):
        names = [member.name for member in facts.members if disk in member.leaves]
        if len(names) > 1:
            yield Seen(
                f"The members {listed(names)} lie on the same disk, {disk}.",
                replacing.commands(facts, names[1:]),
                NEW_IS_LOST,
                replacing.note(facts, "NEW is on a disk of its own."),
            )


def _shared_disk(facts: ArrayFacts) -> Iterator[Seen]:
    array = facts.array
    nested = {holder.name for holder in facts.stack.holders} | {*array.disks}
    for name in facts.stack.beside:
        if name in nested:
            continue
        other = read_array(name, array.root)
        both = _large_on(array) & _large_on(other)
        if both:
            yield Seen(
                f"{other.device} lies on the same hard disks: {listed(sorted(both))}.",
                note="Nothing is wrong with either; only disks of their own part them.",
            )


def _large_on(array: Array) -> set[str]:
    """The hard disks of which an array has a good part."""
    found = set()
    for disk in array.leaves:
        taken = sum(m.size_bytes for m in array.members if disk in m.leaves)
        whole = number(array.root / "sys/block" / disk / "size") * SECTOR
        if taken >= LARGE_SHARE * whole and media_of(disk, array.root) is Media.HDD:
            found.add(disk)
    return found


def _mixed_media(facts: ArrayFacts) -> Iterator[Seen]:
    hdds = [m for m in facts.members if m.media is Media.HDD]
    if len({m.media is Media.HDD for m in facts.members}) < 2:
        return
    names = [m.name for m in hdds if "write_mostly" not in m.state]
    if facts.array.level != "raid1":
        yield Seen(
            f"Hard disks beside flash: {listed([m.name for m in hdds])}.",
            replacing.commands(facts, [m.name for m in hdds]),
            NEW_IS_LOST,
            replacing.note(facts, "NEW is flash like the others."),
        )
    elif names:
        files = (f"/sys/block/{facts.array.name}/md/dev-{name}/state" for name in names)
        yield Seen(
            f"Hard disks beside flash: {listed(names)}.",
            tuple(set_by_hand(file, "writemostly") for file in files),
            note="Reads then go to the others alone; writes still wait for the hard disks. The "
            "array keeps it.",
        )


def _slow(facts: ArrayFacts) -> Iterator[Seen]:
    speeds = {m.name: s for m in facts.members if (s := facts.speeds_kib_s.get(m.name, 0))}
    if any(True for _ in _same_disk(facts)) or any(True for _ in _mixed_media(facts)):
        # Then the difference has a reason, which is said already.
        return
    if not speeds:
        raise UnseenError(facts.unmeasured)
    for name, speed in speeds.items():
        others = [s for other, s in speeds.items() if other != name]
        usual = median(others) if others else speed
        if speed < SLOW * usual:
            rates = f"{show_rate(speed * 1024)} against {show_rate(usual * 1024)}"
            yield Seen(
                f"{name} reads at {speed / usual:.2f} of the others ({rates}).",
                replacing.commands(facts, [name]) if facts.array.redundant else (),
                NEW_IS_LOST,
                "First look at `smartctl -x` and the kernel log for its reason: a cable, retries, "
                f"a shingled disk. {replacing.note(facts, 'NEW is a disk like the others.')}",
            )


CHECKS = (
    FindingKind(
        "same-disk",
        "two members of an array with redundancy lie on one disk",
        "If that disk fails, the array loses both; and it does the work of two.",
        'kernel drivers/md/md.c, "appears to be on the same physical disk as"',
        _same_disk,
    ),
    FindingKind(
        "shared-disk",
        "another array has a tenth or more of the same hard disks",
        "A load on one array makes the other's requests wait, and a sync of one waits for the "
        "other's.",
        'kernel drivers/md/md.c, "they share one or more physical units"',
        _shared_disk,
    ),
    FindingKind(
        "mixed-media",
        "hard disks and flash are members of one array, and on RAID 1 the hard disks are not "
        "marked write-mostly",
        "Most writes, and on other levels than RAID 1 most reads, wait for the hard disks.",
        "md(4), WRITE-MOSTLY; what the disks say of themselves",
        _mixed_media,
    ),
    FindingKind(
        "slow-member",
        "a member reads at less than 0.7 of the others' speed, all being read at once",
        "A sync, and whatever reads or writes whole stripes, is as slow as the slowest member.",
        "measured on this array, at the beginning of each member",
        _slow,
    ),
)
