from pathlib import Path

import fake_sysfs
import pytest

from autotune.preflight.environment import environment, made_of
from autotune.system.array import find_array


def test_a_bug_report_says_what_it_runs_on_and_not_whose_it_is(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/sys/kernel/hostname", "secret")
    machine.put("proc/1/comm", "systemd")
    array = find_array("md0", machine.root)
    facts = environment([array], machine.root)
    assert facts["kernel"].startswith("6.1.176 ")
    assert facts["process 1"] == "systemd"
    assert "numpy" in facts["libraries"]
    assert "optuna" not in facts["libraries"]
    assert facts["/dev/md0"].startswith("raid6, 5 members on hdd, stripe_cache_size 256")
    assert "; without " in facts["/dev/md0"]
    text = repr(facts)
    assert array.uuid not in text.replace("-", "").replace(":", "")
    assert "secret" not in text
    assert str(tmp_path) not in text


def test_who_reads_figures_elsewhere_is_told_what_the_array_is_made_of(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("sys/block/md0/md/layout", "2")
    machine.put("sys/block/md0/md/bitmap/location", "+8")
    for name in ("sda", "sdb", "sdc", "sdd"):
        machine.put(f"sys/block/{name}/device/model", "WDC 40\x1b")
    facts = made_of(find_array("md0", machine.root), ["ext4", "ext4"])
    assert facts["layout"] == "left-symmetric"
    assert (facts["bitmap"], facts["filesystems"]) == ("+8", "ext4")
    several, one = facts["disks"].split(", ")
    assert several.startswith("4 of ")
    assert "WDC 40" in several
    assert "\x1b" not in several
    assert one.startswith("1 of ")
    assert one.endswith("(no model known)")
    assert facts["array size"]
    assert facts["metadata"] == "1.2"


@pytest.mark.parametrize(
    ("layout", "text"), [(0x102, "near 2"), (0x201, "far 2"), (0x10201, "offset 2")]
)
def test_a_layout_of_raid10_has_mdadms_name(tmp_path: Path, layout: int, text: str) -> None:
    machine = fake_sysfs.raid6(tmp_path, "raid10", 4)
    machine.put("sys/block/md0/md/layout", str(layout))
    assert made_of(find_array("md0", machine.root), [])["layout"] == text
