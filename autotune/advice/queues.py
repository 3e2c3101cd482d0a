"""How the members' disks are driven: queue, cache, link and scheduler."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from autotune.advice.array_facts import ArrayFacts, listed
from autotune.advice.finding import FindingKind, Seen
from autotune.suggested import set_by_hand
from autotune.system import sysfs
from autotune.system.array import Media

NCQ_DEPTH = 31
"""The most that libata sets by itself."""


def _disks(facts: ArrayFacts, *media: Media) -> dict[str, Path]:
    """The folders of the members' disks of these media, by name; of volumes (dm, md) none, whose
    queue says nothing, though on 6.1 its files are there."""
    found = {m.disk: facts.array.root / "sys/block" / m.disk for m in facts.members}
    wanted = {m.disk for m in facts.members if m.media in media}
    return {n: folder for n, folder in found.items() if n in wanted and (folder / "mq").is_dir()}


def _queue_depth(facts: ArrayFacts) -> Iterator[Seen]:
    for name, disk in _disks(facts, *Media).items():
        # Only where the controller can do it is there this file (kernel drivers/ata/libata-sata.c).
        able = (disk / "device/ncq_prio_enable").exists()
        if able and sysfs.read_or(disk / "device/queue_depth", "") == "1":
            yield Seen(
                f"{name} is given one request at a time (queue_depth 1).",
                (set_by_hand(f"/sys/block/{name}/device/queue_depth", NCQ_DEPTH),),
                note="It holds until a reboot. If it stays 1, the disk has no NCQ, the kernel "
                "knows that its NCQ is faulty, or libata.force=noncq is set.",
            )


def _write_cache(facts: ArrayFacts) -> Iterator[Seen]:
    disks = _disks(facts, Media.HDD)
    caches = {name: sysfs.read_or(disk / "queue/write_cache", "") for name, disk in disks.items()}
    off = [name for name, cache in caches.items() if cache == "write through"]
    on = [name for name, cache in caches.items() if cache == "write back"]
    if not off or not on:
        return
    sata = all(sysfs.read_or(disks[name] / "device/vendor", "") == "ATA" for name in off)
    yield Seen(
        f"The write cache of {listed(off)} is off, that of {listed(on)} on.",
        tuple(f"hdparm -W 1 /dev/{name}" for name in off) if sata else (),
        "a power cut loses what is in a cache, if a disk does not empty it when it is told to.",
        "The kernel tells it whenever a filesystem asks for that. Where a cache was turned off on "
        "purpose, turn off the others too.",
    )


def _link_speed(facts: ArrayFacts) -> Iterator[Seen]:
    links = {}
    for name, disk in _disks(facts, *Media).items():
        if speed := _link(disk):
            links[name] = (sysfs.read_or(disk / "device/model", ""), *speed)
    for name, (model, rate, shown) in links.items():
        # Another model may be able to do no more.
        fastest = max(others for m, others, _ in links.values() if m == model)
        if rate < fastest:
            best = next(text for m, r, text in links.values() if (m, r) == (model, fastest))
            yield Seen(
                f"The link of {name} runs at {shown}, that of another disk of the same model at "
                f"{best}.",
                note="Often it is a cable, a connector or a slot: look for resets of the link in "
                "`dmesg`.",
            )


def _link(disk: Path) -> tuple[float, str] | None:
    """How fast a disk's link is, to compare and to show; None where that is not told."""
    device = (disk / "device").resolve()
    if port := next((p.name for p in device.parents if re.fullmatch(r"ata\d+", p.name)), ""):
        root = disk.parents[2]
        link = root / "sys/class/ata_link" / f"link{port.removeprefix('ata')}"
        text = sysfs.read_or(link / "sata_spd", "")
        found = re.match(r"([\d.]+) Gbps", text)
        return (float(found[1]), text) if found else None
    text, width = (
        sysfs.read_or(device / "device" / f"current_link_{n}", "") for n in ("speed", "width")
    )
    found = re.match(r"([\d.]+) GT/s", text)
    if not found or not width.isdecimal():
        return None
    return float(found[1]) * int(width), f"{found[0]} ×{width}"


def _scheduler(facts: ArrayFacts) -> Iterator[Seen]:
    if "scheduler" in facts.proven:
        return
    for media in Media:
        names = {n: _chosen(disk) for n, disk in _disks(facts, media).items() if _chosen(disk)}
        if not names:
            continue
        usual = Counter(names.values()).most_common(1)[0][0]
        for name, scheduler in names.items():
            if scheduler != usual:
                yield Seen(
                    f"The scheduler of {name} is {scheduler}, that of others of its kind {usual}.",
                    (set_by_hand(f"/sys/block/{name}/queue/scheduler", usual),),
                    note=_UNTIL,
                    cost="A request to all members waits for the one that orders it last; a "
                    "difference is hardly ever wanted.",
                )
            elif media is Media.NVME and scheduler == "bfq":
                yield Seen(
                    f"{name} is NVMe, and its scheduler is bfq.",
                    (set_by_hand(f"/sys/block/{name}/queue/scheduler", "none"),),
                    note=_UNTIL,
                    cost="bfq takes a lock and some time of a processor for each request, which "
                    "limits what such a disk can do.",
                )


_UNTIL = "It holds until a reboot; `autotune run` measures which one is best, and keeps it."


def _chosen(disk: Path) -> str:
    try:
        return sysfs.value(disk / "queue/scheduler")
    except OSError:
        return ""


CHECKS = (
    FindingKind(
        "queue-depth",
        "a SATA disk is given one request at a time, though its controller can do NCQ",
        "It cannot choose the order of requests, so random reads of several users wait longer.",
        "Serial ATA, Native Command Queuing; kernel drivers/ata/libata-sata.c",
        _queue_depth,
    ),
    FindingKind(
        "write-cache",
        "the write cache is off on some hard disks of an array, and on on others",
        "Writes wait for the disks without one.",
        "hdparm(8), -W; kernel Documentation/ABI/stable/sysfs-block, write_cache",
        _write_cache,
    ),
    FindingKind(
        "link-speed",
        "the SATA or PCIe link of a member is slower than that of another disk of the same model",
        "A disk can be no faster than its link; and one that fell back often has errors.",
        "kernel Documentation/ABI/testing/sysfs-ata, sata_spd; sysfs-bus-pci, current_link_speed",
        _link_speed,
    ),
    FindingKind(
        "scheduler",
        "members of one kind have different schedulers, or an NVMe disk has bfq; not where a "
        "profile in force sets it",
        "What it costs depends on the load; `autotune run` measures it.",
        "kernel Documentation/block/switching-sched.rst, bfq-iosched.rst",
        _scheduler,
    ),
)
