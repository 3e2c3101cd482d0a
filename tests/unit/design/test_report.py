"""What a design says, for people and for programs."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console
from some_design import BALANCED, BETTER, DEFAULT, figures, result

from autotune.design.design import Result
from autotune.design.rebuild import rebuild_s
from autotune.measure.workload import load_workload
from autotune.report.design import print_design
from autotune.report.design_document import document
from autotune.system.blockdev import Media


def printed(found: Result, width: int) -> str:
    output = io.StringIO()
    print_design(Console(file=output, width=width, color_system=None), document(found, made=False))
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
    for line in vars(result().commands).values():
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
    assert found["commands"]["mdadm"] == result().commands.mdadm
    assert found["next"] == "autotune run /dev/md0 --workload balanced"
    assert found["trials"][0]["setting"] == DEFAULT.setting


def test_what_comes_next_names_the_workload_as_it_was_given() -> None:
    found = document(result(workload="my loads/mail.toml"), made=True)
    assert found["next"] == "autotune run /dev/md0 --workload 'my loads/mail.toml'"
    assert found["made"] == "/dev/md0"


def test_a_rebuild_reads_each_disk_once_at_the_speed_of_the_check() -> None:
    def hours(media: Media) -> float:
        seconds = rebuild_s(figures(1.0), BALANCED.phases, result(media=media).workspace)
        assert seconds is not None
        return seconds / 3600

    flat = (4 << 40) / 50e6 / 3600
    assert hours(Media.SSD) == pytest.approx(flat, rel=0.01)
    assert 1.2 * flat < hours(Media.HDD) < 1.5 * flat
    quick = load_workload("streaming").phases[:1]
    assert rebuild_s(figures(1.0), quick, result().workspace) is None


def test_the_workspace_is_locked_by_its_disks() -> None:
    workspace = result().workspace
    assert workspace.leaves == {"sdb", "sdc", "sdd", "sde", "sdf"}
    assert workspace.root == Path("/")
    assert workspace.mdadm_uuid == "abababab:abababab:abababab:abababab"
