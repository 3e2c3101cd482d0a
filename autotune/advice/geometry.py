"""Whether filesystems know the stripe of the array. Only parity makes that matter.

XFS says by its mount options what it uses; of ext4 the superblock is asked, which holds after
the next mount too.
"""

import re
from collections.abc import Iterator
from shlex import quote

from autotune.advice.array_facts import ArrayFacts, show_kib
from autotune.advice.finding import FindingKind, Seen
from autotune.advice.mounted_anew import UNMOUNTED, mounted_anew
from autotune.system.blockdev import SECTOR
from autotune.system.programs import output
from autotune.system.stack import Mount

_EXT = ("ext2", "ext3", "ext4")


def _ext4(facts: ArrayFacts) -> Iterator[Seen]:
    stripe = facts.stripe_bytes
    for mount in facts.filesystems(_EXT) if stripe else ():
        device = facts.device(mount.device)
        said = output("e2fsprogs", "dumpe2fs", "-h", device)
        block = _number(r"^Block size:\s+(\d+)", said)
        width = _number(r"^RAID stripe width:\s+(\d+)", said) * block
        mounted = mount.option("stripe") * block
        if not block or any(known and known % stripe == 0 for known in (width, mounted)):
            continue
        stride = max(facts.array.chunk_bytes // block, 1)
        yield Seen(
            _text(facts, mount, width),
            (f"tune2fs -E stride={stride},stripe_width={stripe // block} {quote(device)}",),
            note="It takes effect at the next mount, for what is written from then on. If this "
            "kernel lets nobody write to a mounted device, unmount it first.",
        )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.M)
    return int(found[1]) if found else 0


def _text(facts: ArrayFacts, mount: Mount, width_bytes: int) -> str:
    where = f"The {mount.fstype} on {mount.mountpoint}"
    real = f"the array's is {show_kib(facts.stripe_bytes)}"
    if not width_bytes:
        return f"{where} knows no stripe; {real}."
    return f"{where} is made for a stripe of {show_kib(width_bytes)}; {real}."


def _xfs(facts: ArrayFacts) -> Iterator[Seen]:
    stripe, chunk = facts.stripe_bytes, facts.array.chunk_bytes
    for mount in facts.filesystems(("xfs",)) if stripe else ():
        unit, width = (mount.option(name) * SECTOR for name in ("sunit", "swidth"))
        if unit and unit % chunk == 0 and width % stripe == 0:
            continue
        text = _text(facts, mount, width)
        if unit:
            text += f" Its stripe unit is {show_kib(unit)}, the array's chunk {show_kib(chunk)}."
        if options := _allowed(unit, chunk, stripe):
            commands, more = mounted_anew(facts, mount, {"sunit", "swidth"}, options)
            note = f"XFS keeps the values, for what is written from then on. {more}"
            yield Seen(text, commands, UNMOUNTED, note.strip())
        elif "noalign" in mount.options:
            commands, more = mounted_anew(facts, mount, {"noalign"})
            note = f"It is mounted with noalign; take that out of /etc/fstab first. {more}"
            yield Seen(text, commands, UNMOUNTED, note.strip())
        else:
            yield Seen(
                text,
                note="The stripe unit is fixed when XFS is made, and mkfs.xfs sees the array's by "
                "itself; with a backup, it can be made anew.",
            )


def _allowed(unit: int, chunk: int, stripe: int) -> tuple[str, ...]:
    """The mount options that mend it, if any do. Another width is always taken. Another unit is
    refused where the allocation groups are no multiple of it (seen on 6.1), and one where there was
    none (xfs(5), sunit): the filesystem would then stay unmounted."""
    if not unit or unit % chunk or stripe % unit:
        return ()
    return f"sunit={unit // SECTOR}", f"swidth={stripe // SECTOR}"


CHECKS = (
    FindingKind(
        "ext4-stripe",
        "an ext4 on RAID 4, 5 or 6 has no stripe width, or that of another stripe, as after the "
        "array has grown",
        "It cannot lay large writes on whole stripes, so md has to read before it can compute the "
        "parity of more of them.",
        "mke2fs(8), stripe_width",
        _ext4,
    ),
    FindingKind(
        "xfs-stripe",
        "an XFS on RAID 4, 5 or 6 has no stripe unit and width, or others than the array",
        "It does not lay files and large writes on the array's chunks and stripes, so md has to "
        "read before it can compute the parity of more of them.",
        "mkfs.xfs(8), sunit and swidth",
        _xfs,
    ),
)
