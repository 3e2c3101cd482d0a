"""All checks on fake trees: what is said, what is not, and how."""

import json
from pathlib import Path

import fake_sysfs
import pytest
from advice_looks import MD, array, choose, found, look
from fake_sysfs import FakeMachine
from rich.console import Console

from autotune.advice.advise import CHECKS, NAMES
from autotune.report.advice import advice_document, advice_line, print_advice

STRIPE_SECTORS = 3 * 128
"""Of five disks with two of parity, in chunks of 64 KiB."""


@pytest.mark.parametrize("level", ["raid0", "raid1", "raid5", "raid6", "raid10"])
@pytest.mark.parametrize("rotational", [True, False])
def test_a_clean_array_has_no_findings(tmp_path: Path, level: str, rotational: bool) -> None:
    machine = array(tmp_path, level, 4, rotational)
    machine.partition("md0", "md0p1")
    machine.put("sys/block/md0/md0p1/start", str(STRIPE_SECTORS * 16))
    machine.put("sys/block/md0/md0p1/size", str(1 << 30))
    assert found(machine) == []


def test_names_are_unique_and_plain() -> None:
    assert len(set(NAMES)) == len(NAMES)
    for check in CHECKS:
        assert check.name.replace("-", "").isalnum()
        assert check.cost.endswith(".")
        assert check.source
        assert not check.finds.endswith(".")


def test_what_cannot_be_looked_at_is_named_with_the_package(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.mount("md0", Path("/srv"))
    missing = {each.name: each.reason for each in look(machine).not_looked_at}
    assert missing["ext4-stripe"] == "needs e2fsprogs"
    assert set(missing) == {"ext4-stripe", "slow-member"}


def planted(root: Path) -> FakeMachine:
    """A machine with two findings."""
    machine = fake_sysfs.raid6(root)
    choose(machine, "sdc", "bfq")
    machine.put(f"{MD}/bitmap/chunksize", str(1 << 20))
    return machine


def test_a_finding_can_be_silenced(tmp_path: Path) -> None:
    advice = look(planted(tmp_path), silence=("scheduler", "slow-member"))
    assert [finding.name for finding in advice.findings] == ["bitmap-chunk"]
    assert [finding.name for finding in advice.silenced] == ["scheduler"]
    assert advice.not_looked_at == ()


@pytest.mark.parametrize("width", [40, 80])
def test_the_report_fits_and_commands_stay_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    advice = look(planted(tmp_path))
    print_advice(Console(width=width), advice)
    lines = capsys.readouterr().out.splitlines()
    commands = [command for finding in advice.findings for command in finding.commands]
    assert {f"    {command}" for command in commands} <= {*lines}
    assert all(len(ln) <= width for ln in lines if ln.strip() not in commands)
    assert advice_line(advice).startswith("advise: 2 findings")


def test_the_document_has_everything(tmp_path: Path) -> None:
    document = json.loads(json.dumps(advice_document(look(planted(tmp_path)))))
    assert set(document) == {"device", "findings", "silenced", "not_looked_at"}
    keys = {"name", "seen", "cost", "source", "commands", "live", "note", "risk"}
    assert all(set(finding) == keys for finding in document["findings"])


def test_what_does_harm_is_run_by_nobody_who_copies_all_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = planted(tmp_path)
    machine.partition("md0", "md0p1")
    machine.put("sys/block/md0/md0p1/start", "2048")
    machine.put("sys/block/md0/md0p1/size", str(1 << 30))
    advice = look(machine)
    print_advice(Console(width=80), advice)
    printed = capsys.readouterr().out
    commands = [line.strip() for line in printed.splitlines() if line.startswith("    ")]
    assert commands == [c for f in advice_document(advice)["findings"] for c in f["commands"]]
    (harmful,) = (command for command in commands if "sfdisk" in command)
    assert harmful.startswith("# echo")
    assert "Commented out: md0p1 is made anew, and all that is on it is lost" in printed
    assert len([command for command in commands if not command.startswith("#")]) == 2


def test_each_line_of_a_commented_command_is_a_comment(tmp_path: Path) -> None:
    machine = array(tmp_path, "raid5", 4)
    machine.mount("md0", Path("/a\\012b"), fstype="xfs", options=("rw,relatime", "noalign"))
    (finding,) = advice_document(look(machine))["findings"]
    assert finding["risk"]
    for command in finding["commands"]:
        assert all(line.startswith("# ") for line in command.splitlines())


def test_control_characters_of_names_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = array(tmp_path, "raid1", 2)
    machine.mount("md0", Path("/a\x1b[2J"), options=("rw", "rw"))
    print_advice(Console(width=80), look(machine))
    assert "\x1b" not in capsys.readouterr().out
