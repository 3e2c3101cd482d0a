"""A design as it comes out of the search, to be shown."""

from datetime import UTC, datetime

from autotune.design.blank_disks import Disk
from autotune.design.commands import commands
from autotune.design.design import Result
from autotune.design.proof import Finalist, Proof
from autotune.design.shape import Shape
from autotune.design.space import space
from autotune.design.workspace import Workspace
from autotune.measure.workload import load_workload
from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.stats.sequential import Held
from autotune.stats.verdict import Comparison, Conclusion
from autotune.store import TrialRecord
from autotune.system.blockdev import Media

MIB = 1 << 20
BALANCED = load_workload("balanced")
DEFAULT = Shape("raid6", "left-symmetric", 512, "bitmap")
BETTER = Shape("raid10", "f2", 128, "bitmap")


def figures(factor: float) -> dict[str, Estimate]:
    shown = {}
    for figure in BALANCED.figures:
        value = 50e6 * factor if figure.kind == "throughput" else 30e6 / factor
        shown[figure.name] = Estimate(value, 0.03)
    return shown


def result(better: bool = True, media: Media = Media.HDD, workload: str = "balanced") -> Result:
    disks = tuple(Disk(f"/dev/disk/by-id/{n}", f"sd{n}", 4 << 40, media, n, "") for n in "bcdef")
    gain = Comparison(1.42, 1.35, 1.5, Conclusion.BETTER)
    held = {"write.p99": Held.BROKEN, "resync.p99": Held.HOLDS}
    finalists = (
        Finalist(DEFAULT, figures(1.0)),
        Finalist(BETTER, figures(1.42), gain, better, "better beyond noise", held),
    )
    proof = Proof(finalists, 2)
    record = TrialRecord(
        1,
        "baseline",
        datetime.now(UTC),
        40.0,
        Status.COMPLETE,
        "",
        DEFAULT.setting,
        DEFAULT.setting,
        figures(1.0),
        ("read",),
    )
    winner = proof.winner.shape
    return Result(
        Workspace(disks, "ab" * 16, "md127", 4096 * MIB),
        space(5),
        BALANCED,
        tuple(BALANCED.figures),
        proof,
        commands(winner, "/dev/md0", [d.given for d in disks], "u-u"),
        "/dev/md0",
        "no other shape promises enough to be worth a trial",
        (record,),
        1500.0,
        40 * 1024 * MIB,
        workload,
    )
