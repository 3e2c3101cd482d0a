"""Whether what lies on the array, and the array on its disks, begins at the right place."""

from collections.abc import Iterator
from shlex import quote

from autotune.advice import replacing
from autotune.advice.array_facts import ArrayFacts, block_bytes, show_kib, start_bytes
from autotune.advice.finding import NEW_IS_LOST, FindingKind, Seen
from autotune.suggested import as_root
from autotune.system import layers
from autotune.system.blockdev import SECTOR, number
from autotune.system.programs import output

SMALL_BYTES = 64 << 20
"""A smaller partition is for booting or the like, where speed is nothing."""
_LOST = "{} is made anew, and all that is on it is lost, so only after a backup."


def _members(facts: ArrayFacts) -> Iterator[Seen]:
    root = facts.array.root
    for member in facts.members:
        disk = root / "sys/block" / member.disk
        if number(disk / "alignment_offset"):
            # A disk whose blocks begin elsewhere; few are left.
            continue
        start = start_bytes(facts.entry(member.name))
        data = start + number(facts.array.md / f"dev-{member.name}" / "offset") * SECTOR
        block = block_bytes(member.disk, member.media, root)
        if data % block:
            yield Seen(
                f"The data of the member {member.name} begin at {show_kib(data)} of the disk "
                f"{member.disk}, which is no multiple of its blocks of {show_kib(block)}.",
                replacing.commands(facts, [member.name]),
                NEW_IS_LOST,
                replacing.note(facts, "NEW is a partition on a spare disk that begins at 1 MiB."),
            )


def _partitions(facts: ArrayFacts) -> Iterator[Seen]:
    grain, what = facts.grain
    for holder in facts.stack.holders:
        entry = facts.entry(holder.name)
        start = start_bytes(entry)
        if holder.kind != "partition" or start % grain == 0:
            continue
        if number(entry / "size") * SECTOR < SMALL_BYTES:
            continue
        table = quote(facts.device(entry.resolve().parent.name))
        sectors = -(-start // grain) * grain // SECTOR
        yield Seen(
            f"The partition {holder.name} begins at {show_kib(start)}, which is no multiple of the "
            f"array's {what} of {show_kib(grain)}.",
            (
                f"echo 'start={sectors}, size=+' | "
                + as_root(f"sfdisk -N {number(entry / 'partition')} {table}"),
            ),
            _LOST.format(holder.name),
            cost=_cost(what),
        )


def _lvm(facts: ArrayFacts) -> Iterator[Seen]:
    grain, what = facts.grain
    volumes = [holder.name for holder in facts.stack.holders if holder.kind == "lvm"]
    here = {facts.array.name, *(holder.name for holder in facts.stack.holders)} - {*volumes}
    below = {path.name for name in volumes for path in (facts.entry(name) / "slaves").glob("*")}
    for name in sorted(below & here):
        raw = facts.device(name)
        device = quote(raw)
        fields = ("--noheadings", "--nosuffix", "--units", "b", "-o", "pe_start,vg_name")
        words = output("lvm2", "pvs", "--readonly", *fields, raw).split()
        start = int(words[0]) if words and words[0].isdecimal() else 0
        if start % grain == 0:
            continue
        group = quote(words[1]) if len(words) > 1 else "GROUP"
        yield Seen(
            f"The extents of LVM on {raw} begin at {show_kib(start)}, which is no multiple of "
            f"the array's {what} of {show_kib(grain)}.",
            (
                f"pvmove {device}",
                f"vgreduce {group} {device}",
                f"pvremove {device}",
                f"pvcreate --dataalignment {grain // 1024}k {device}",
                f"vgextend {group} {device}",
            ),
            "each line needs the one before to have ended without an error.",
            "pvmove needs room for all of it on other disks of the group, and hours; move the "
            "volumes back the same way.",
            cost=_cost(what),
        )


def _crypt(facts: ArrayFacts) -> Iterator[Seen]:
    grain, what = facts.grain
    for holder in facts.stack.holders:
        if holder.kind != "crypt":
            continue
        for words in layers.table(holder.name, facts.array.root):
            # Cipher, key, first IV, device, offset: kernel device-mapper/dm-crypt.rst.
            offset = words[7] if len(words) > 7 else ""
            start = int(offset) * SECTOR if offset.isdecimal() else 0
            if start % grain == 0:
                continue
            below = next((p.name for p in (facts.entry(holder.name) / "slaves").glob("*")), "")
            device = quote(facts.device(below))
            yield Seen(
                f"The encrypted data of {holder.label} begin at {show_kib(start)}, which is no "
                f"multiple of the array's {what} of {show_kib(grain)}.",
                (f"cryptsetup luksFormat --align-payload={grain // SECTOR} {device}",),
                _LOST.format(holder.label),
                cost=_cost(what),
            )


def _cost(what: str) -> str:
    if what == "stripe":
        return _STRIPES
    if what == "chunk":
        return "Requests that would lie in one chunk are split over two members."
    return _BLOCKS


_STRIPES = (
    "Writes that a filesystem lays on whole stripes cover parts of two, so md has to read before "
    "it can compute their parity."
)
_BLOCKS = "A small write covers parts of two blocks, which the disk has to read and write both."
_SOURCE = "kernel Documentation/ABI/stable/sysfs-block, optimal_io_size"

CHECKS = (
    FindingKind(
        "member-alignment",
        "the data of a member begin at no multiple of what its disk writes as a whole",
        _BLOCKS,
        "kernel Documentation/ABI/stable/sysfs-block, physical_block_size",
        _members,
    ),
    FindingKind(
        "partition-alignment",
        "a partition on the array begins at no multiple of its stripe (RAID 4, 5, 6), its chunk "
        "(RAID 0, 10) or its disks' blocks (RAID 1)",
        _STRIPES,
        _SOURCE,
        _partitions,
    ),
    FindingKind(
        "lvm-alignment",
        "the first extent of LVM on the array begins at no multiple of the same",
        _STRIPES,
        f"pvcreate(8), --dataalignment; {_SOURCE}",
        _lvm,
    ),
    FindingKind(
        "crypt-alignment",
        "the data of an encrypted device on the array begin at no multiple of the same",
        _STRIPES,
        f"cryptsetup-luksFormat(8), --align-payload; {_SOURCE}",
        _crypt,
    ),
)
