"""What a design says, for people and for programs."""

import io
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.console import Console

from autotune.design.design import Result
from autotune.design.gate import Disk
from autotune.design.orders import orders
from autotune.design.plot import Plot
from autotune.design.proof import Finalist, Proof
from autotune.design.rebuild import rebuild_s
from autotune.design.shape import Shape
from autotune.design.space import space
from autotune.measure.workload import load_workload
from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.report.design import print_design
from autotune.report.design_document import document
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
        Plot(disks, "ab" * 16, "md127", 4096 * MIB),
        space(5),
        BALANCED,
        tuple(BALANCED.figures),
        proof,
        orders(winner, "/dev/md0", [d.given for d in disks], "u-u"),
        "/dev/md0",
        "no other shape promises enough to be worth a trial",
        (record,),
        1500.0,
        40 * 1024 * MIB,
        workload,
    )


def printed(found: Result, width: int) -> str:
    output = io.StringIO()
    print_design(Console(file=output, width=width, color_system=None), found)
    return output.getvalue()


@pytest.mark.parametrize("width", [80, 40])
def test_it_fits_and_says_what_to_weigh(width: int) -> None:
    text = printed(result(), width)
    commands = ("  mdadm ", "  mkfs.", "  UUID=")
    lines = [line for line in text.splitlines() if not line.startswith(commands)]
    assert max(map(len, lines)) <= width
    together = " ".join(text.split())
    for part in ("Take B, raid10, f2, 128 KiB chunks, bitmap", "12 TiB", "10 TiB", "2 disks"):
        assert part in together
    assert "×1.42 (1.35–1.50)" in together
    assert "A rebuild of a disk is estimated" in together
    for line in vars(result().orders).values():
        assert f"  {line}\n" in text


def test_mdadms_default_is_an_answer_too() -> None:
    together = " ".join(printed(result(better=False), 80).split())
    assert "Take A, raid6, left-symmetric, 512 KiB chunks, bitmap: nothing was" in together
    assert "--level=raid6" in together


def test_programs_read_the_same() -> None:
    found = json.loads(json.dumps(document(result(), made=False)))
    assert found["winner"] == BETTER.setting
    assert found["default"] == DEFAULT.setting
    assert found["proven"] is True
    assert found["made"] is None
    assert found["finalists"][1]["survives"] == 1
    assert found["finalists"][1]["ceilings"]["write.p99"] == "broken"
    assert found["finalists"][0]["gain"] is None
    assert found["commands"]["mdadm"] == result().orders.mdadm
    assert found["next"] == "autotune run /dev/md0 --workload balanced"
    assert found["trials"][0]["setting"] == DEFAULT.setting


def test_what_comes_next_names_the_workload_as_it_was_given() -> None:
    found = document(result(workload="my loads/mail.toml"), made=True)
    assert found["next"] == "autotune run /dev/md0 --workload 'my loads/mail.toml'"
    assert found["made"] == "/dev/md0"


def test_a_rebuild_reads_each_disk_once_at_the_speed_of_the_check() -> None:
    def hours(media: Media) -> float:
        seconds = rebuild_s(figures(1.0), BALANCED.phases, result(media=media).plot)
        assert seconds is not None
        return seconds / 3600

    flat = (4 << 40) / 50e6 / 3600
    assert hours(Media.SSD) == pytest.approx(flat, rel=0.01)
    assert 1.2 * flat < hours(Media.HDD) < 1.5 * flat
    quick = load_workload("streaming").phases[:1]
    assert rebuild_s(figures(1.0), quick, result().plot) is None


def test_the_plot_is_locked_by_its_disks() -> None:
    plot = result().plot
    assert plot.leaves == {"sdb", "sdc", "sdd", "sde", "sdf"}
    assert plot.root == Path("/")
    assert plot.mdadm_uuid == "abababab:abababab:abababab:abababab"
