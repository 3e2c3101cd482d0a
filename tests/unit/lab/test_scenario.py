"""Scenarios may come from strangers."""

from pathlib import Path

import pytest

from autotune.errors import UsageError
from autotune.lab.scenario import (
    Filesystem,
    HddGroup,
    NvmeGroup,
    Scenario,
    ScenarioArray,
    SsdGroup,
    load,
    shipped,
)
from autotune.untrusted import MOST_TYPED_BYTES

DISKS = """
[[disks]]
kind = "ssd"
count = 3
size_mib = 64
"""
ARRAY = """
[[arrays]]
name = "md0"
level = "raid1"
members = 2
"""
FILESYSTEM = """
[filesystem]
array = "md0"
kind = "ext4"
mount = "/mnt/md0"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text)
    return str(path)


def test_every_shipped_scenario_loads_and_has_a_summary() -> None:
    scenarios = shipped()
    assert {"raid6-hdd", "raid5-hdd", "raid10-ssd", "raid1-hdd", "raid5-ssd"} <= scenarios.keys()
    assert all(scenarios.values())


def test_a_file_is_loaded_by_its_path(tmp_path: Path) -> None:
    scenario = load(write(tmp_path, DISKS + ARRAY + FILESYSTEM))
    assert len(scenario.each_disk) == 3
    assert scenario.arrays[0].members == 2
    assert scenario.filesystem


def test_what_is_said_of_a_disk_overrides_its_kind(tmp_path: Path) -> None:
    disk = load(write(tmp_path, DISKS + "read_us = 5.5")).each_disk[0]
    assert disk.spec()["read_ns"] == 5500
    assert disk.spec()["size"] == 64 * 1024 * 1024


def test_each_kind_has_its_own_defaults(tmp_path: Path) -> None:
    kinds = "".join(DISKS.replace("ssd", kind) for kind in ("hdd", "ssd", "nvme"))
    hdd, ssd, nvme = (group.spec() for group in load(write(tmp_path, kinds)).disks)
    assert hdd["rotating"] == 1
    assert ssd["rotating"] == nvme["rotating"] == 0
    assert nvme["rate"] > ssd["rate"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "disks"),
        ("disks = [", "correct this"),
        (DISKS + "colour = 'red'", "colour"),
        (DISKS.replace("ssd", "tape"), "tape"),
        (DISKS.replace("64", "1"), "size_mib"),
        (DISKS.replace("3", "17"), "count"),
        (DISKS.replace("3", "9") * 2, "at most 16 disks"),
        (DISKS.replace("64", "16384"), "at most 32768 MiB"),
        (DISKS + "read_us = inf", "read_us"),
        (DISKS + "read_us = nan", "read_us"),
        ("memory_mib = 1000000\n" + DISKS, "memory_mib"),
        (DISKS + ARRAY.replace("2", "4"), "more members than there are disks"),
        (DISKS + ARRAY.replace("md0", "md0; reboot"), "name"),
        (DISKS + ARRAY.replace("md0", "../md0"), "name"),
        (DISKS + ARRAY.replace('"md0"', '"md0\\n"'), "name"),
        (DISKS + ARRAY.replace("raid1", "raid1 --force"), "level"),
        (DISKS * 2 + ARRAY * 2, "the same name"),
        (DISKS + FILESYSTEM, "not there"),
        (DISKS + ARRAY + FILESYSTEM.replace("/mnt/md0", "/mnt/../etc"), "mount"),
        (DISKS + ARRAY + FILESYSTEM.replace("/mnt/md0", "/etc"), "mount"),
        ("#" * MOST_TYPED_BYTES + DISKS, "larger than"),
        ('summary = "\\u001b[2J"\n' + DISKS, "summary"),
    ],
)
def test_a_bad_scenario_is_refused_with_its_reason(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        load(write(tmp_path, text))


@pytest.mark.parametrize(
    "name", ["nonesuch", "", "../scenarios/raid6-hdd", "/etc/passwd", "x.toml"]
)
def test_an_unknown_name_is_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(UsageError, match="autotune lab --list"):
        load(name)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="correct this"):
        load(str(path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            DISKS + "red_us = 5",
            'disks 1, red_us: there is no such key (did you mean "read_us"?); the keys are count',
        ),
        ("udef = true\n" + DISKS, 'udef: there is no such key (did you mean "udev"?)'),
        (DISKS + ARRAY + "chunk = 4", "arrays 1, chunk: there is no such key"),
        (DISKS.replace("ssd", "sdd"), "disks 1: there is no 'kind' 'sdd'; there are 'hdd', 'ssd'"),
        (DISKS.replace('kind = "ssd"', ""), "disks 1: kind is not there; it has to be hdd or ssd"),
        (DISKS.replace("3", '"x"'), "disks 1, count: it has to be a whole number"),
        (DISKS.replace("3", "17"), "disks 1, count: it has to be 16 or less"),
        (DISKS + ARRAY.replace("md0", "data"), "arrays 1, name: it has to be md and a number"),
        (
            DISKS + ARRAY + FILESYSTEM.replace("/mnt/md0", "/srv"),
            "filesystem, mount: it has to be a folder in /mnt",
        ),
    ],
)
def test_a_refusal_is_plain_and_says_what_could_stand_there(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        load(write(tmp_path, text))
    assert said in str(refused.value)
    assert "Input" not in str(refused.value)


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nofile\.toml cannot be read: No such file"):
        load(str(tmp_path / "nofile.toml"))


def test_the_page_names_every_key() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/lab.md").read_text()
    for table in (Scenario, HddGroup, SsdGroup, NvmeGroup, ScenarioArray, Filesystem):
        for key in table.model_fields:
            assert f"`{key}`" in page or f"[{key}]" in page, key
