"""The write-intent bitmap: what a crash costs without one, and what a fine one costs always."""

from collections.abc import Iterator

from autotune.advice.array_facts import ArrayFacts, show_kib
from autotune.advice.finding import FindingKind, Seen
from autotune.quantities import show_bytes, show_seconds
from autotune.system import sysfs
from autotune.system.blockdev import number

LARGE_BYTES = 100 << 30
"""From here on mdadm makes a bitmap by itself (mdadm(8), --bitmap)."""
FINE_BYTES = 16 << 20
DEFAULT_MIB = 64
DEFAULT_DELAY_S = 5
_AWAY = (
    "a member is missing. Without the bitmap that it knows, `--re-add` does not take it back, and "
    "all of it is rebuilt; bring it back first."
)


def _none(facts: ArrayFacts) -> Iterator[Seen]:
    array = facts.array
    policy = sysfs.read_or(array.md / "consistency_policy", "")
    without = sysfs.read_or(array.md / "bitmap/location", "") == "none"
    size = number(array.md / "component_size") * 1024
    # Firmware formats keep their bitmap another way.
    own = array.redundant and not array.metadata.startswith("external")
    if not (own and without and policy in ("", "resync") and size > LARGE_BYTES):
        return
    yield Seen(
        f"The array has no write-intent bitmap; its members have {show_bytes(size)} each.",
        (f"mdadm --grow --bitmap=internal {array.device}",),
        note="Where a write has to set a bit first, it waits for that. Not while a sync runs.",
        cost=f"After a crash md resyncs all of the array; {_how_long(facts, size)}.",
    )


def _how_long(facts: ArrayFacts, size_bytes: int) -> str:
    slowest = min(facts.speeds_kib_s.values(), default=0)
    limit = sysfs.read_or(facts.array.md / "sync_speed_max", "").split(" ")[0]
    speed = min(slowest, int(limit)) if limit.isdecimal() else slowest
    if not speed:
        return f"`autotune forecast {facts.array.device}` measures how long that takes"
    return f"that takes {show_seconds(size_bytes / 1024 / speed)} at least, as the disks read now"


def _fine(facts: ArrayFacts) -> Iterator[Seen]:
    array = facts.array
    chunk = number(array.md / "bitmap/chunksize")
    kind = sysfs.read_or(array.md / "bitmap_type", "[bitmap]")
    if not 0 < chunk < FINE_BYTES or "[bitmap]" not in kind or not _on_members(facts):
        return
    yield Seen(
        f"A bit of the bitmap stands for {show_kib(chunk)}; mdadm's default is {DEFAULT_MIB} MiB.",
        (
            f"mdadm --grow --bitmap=none {array.device} && "
            f"mdadm --grow --bitmap=internal --bitmap-chunk={DEFAULT_MIB}M"
            f"{_as_set(facts)} {array.device}",
        ),
        risk=_AWAY if array.degraded else "",
        note="A crash between the two is followed by a whole resync. Not while a sync runs.",
    )


def _on_members(facts: ArrayFacts) -> bool:
    """Whether it is on the members, for this machine alone; not in a file or for a cluster."""
    bitmap = facts.array.md / "bitmap"
    elsewhere = sysfs.read_or(bitmap / "location", "") == "file"
    return not elsewhere and sysfs.read_or(bitmap / "metadata", "") != "clustered"


def _as_set(facts: ArrayFacts) -> str:
    """The options that keep what was set of the bitmap: a new one begins with mdadm's defaults."""
    bitmap = facts.array.md / "bitmap"
    options = ""
    if behind := number(bitmap / "backlog"):
        options += f" --write-behind={behind}"
    if (delay_s := number(bitmap / "time_base")) not in (0, DEFAULT_DELAY_S):
        options += f" --delay={delay_s}"
    return options


CHECKS = (
    FindingKind(
        "no-bitmap",
        "an array of members above 100 GiB has neither a bitmap, nor a journal or PPL",
        "After a crash md resyncs all of the array.",
        "md(4), BITMAP WRITE-INTENT LOGGING",
        _none,
    ),
    FindingKind(
        "bitmap-chunk",
        "a bit of the bitmap stands for less than 16 MiB",
        "The first write to each such part waits until its bit is written to all members; after a "
        "crash, less has to be resynced.",
        "md(4), BITMAP WRITE-INTENT LOGGING; mdadm(8), --bitmap-chunk",
        _fine,
    ),
)
