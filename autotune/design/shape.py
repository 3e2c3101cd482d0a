"""A shape: what is decided when an array is made, and hardly ever after. Pure.

Defaults and words are mdadm's (mdadm(8), 4.2); widths are those that the kernel tells filesystems
(drivers/md/raid5.c and raid10.c, io_opt).
"""

from dataclasses import asdict, dataclass

from autotune.problem.setting import Setting
from autotune.system.array import PARITY

COPIES = 2
"""Of each block on RAID 10."""
LAYOUTS = {
    "raid1": ("none",),
    "raid5": ("left-symmetric", "left-asymmetric"),
    "raid6": ("left-symmetric", "left-asymmetric"),
    "raid10": ("n2", "f2", "o2"),
}
"""By level; mdadm's own choice is the first."""
LEAST_DISKS = {"raid1": 2, "raid5": 3, "raid6": 4, "raid10": 2}
CHUNKS_KIB = (16, 32, 64, 128, 256, 512, 1024)
MDADM_CHUNK_KIB = 512
BITMAP, PPL, RESYNC = "bitmap", "ppl", "resync"
CONSISTENCIES = (BITMAP, PPL, RESYNC)
"""How an array becomes consistent after a crash; `resync` is without a bitmap, so in full."""
BLOCK_KIB = 4
"""Of ext4, unless it is very small."""


@dataclass(frozen=True)
class Shape:
    """`layout` is "none" on RAID 1, which has no chunks either: `chunk_kib` means nothing there."""

    level: str
    layout: str
    chunk_kib: int
    consistency: str

    @classmethod
    def of(cls, setting: Setting) -> "Shape":
        """The shape that a strategy's setting stands for."""
        level, layout, consistency = (
            str(setting[name]) for name in ("level", "layout", "consistency")
        )
        return cls(level, layout, int(setting["chunk_kib"]), consistency)

    @property
    def setting(self) -> dict[str, int | str]:
        return asdict(self)

    @property
    def striped(self) -> bool:
        return self.level != "raid1"

    @property
    def chunk(self) -> str:
        """Its size, for people."""
        return (
            f"{self.chunk_kib // 1024} MiB" if self.chunk_kib >= 1024 else f"{self.chunk_kib} KiB"
        )

    def __str__(self) -> str:
        parts = [self.level]
        if self.striped:
            parts += [self.layout, f"{self.chunk} chunks"]
        return ", ".join([*parts, "no bitmap" if self.consistency == RESYNC else self.consistency])

    def capacity_bytes(self, disks: int, each_bytes: int) -> int:
        """What so many disks hold, without the little that md takes for itself."""
        if self.level == "raid10":
            return disks * each_bytes // COPIES
        return (disks - PARITY[self.level] if self.level in PARITY else 1) * each_bytes

    def survives(self, disks: int) -> int:
        """How many disks may fail, whichever they are."""
        return {"raid1": disks - 1, "raid10": COPIES - 1, **PARITY}[self.level]

    def width(self, disks: int) -> int:
        """The chunks of data in a stripe."""
        if self.level in PARITY:
            return disks - PARITY[self.level]
        if self.level == "raid1":
            return 1
        return disks // COPIES if self.layout == "n2" and disks % COPIES == 0 else disks

    def checked_share(self, disks: int) -> float:
        """How many bytes of each disk a check reads for each byte that md counts."""
        return COPIES / disks if self.level == "raid10" else 1.0

    def mdadm_words(self, disks: int) -> tuple[str, ...]:
        """The options of `mdadm --create`."""
        words = ["--metadata=1.2", f"--level={self.level}", f"--raid-devices={disks}"]
        if self.striped:
            words += [f"--chunk={self.chunk_kib}K", f"--layout={self.layout}"]
        if self.consistency == PPL:
            return (*words, "--consistency-policy=ppl")
        return (*words, f"--bitmap={'internal' if self.consistency == BITMAP else 'none'}")

    def ext4_words(self, disks: int) -> tuple[str, ...]:
        """The options of `mkfs.ext4` that fit its blocks to the stripe."""
        if not self.striped:
            return ()
        stride = max(self.chunk_kib // BLOCK_KIB, 1)
        return ("-E", f"stride={stride},stripe_width={stride * self.width(disks)}")

    def xfs_words(self, disks: int) -> tuple[str, ...]:
        """The options of `mkfs.xfs` that fit its allocation to the stripe."""
        return ("-d", f"su={self.chunk_kib}k,sw={self.width(disks)}") if self.striped else ()
