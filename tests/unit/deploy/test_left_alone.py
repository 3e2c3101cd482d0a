"""What a change of a scheduler would take from others."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.deploy.left_alone import left_alone
from autotune.system.array import find_array


@pytest.mark.parametrize(
    ("file", "line", "scheduler", "group"),
    [
        ("system.slice/svc/io.bfq.weight", "{} 300", "bfq", "system.slice/svc"),
        ("blkio/svc/blkio.bfq.weight_device", "{} 300", "bfq", "blkio/svc"),
        ("system.slice/svc/io.bfq.weight", "{} 300", "kyber", ""),
        ("system.slice/svc/io.bfq.weight", "9:99 300", "bfq", ""),
        ("system.slice/svc/io.weight", "{} 300", "bfq", ""),
    ],
)
def test_a_scheduler_that_control_groups_have_weights_for_is_left(
    tmp_path: Path, file: str, line: str, scheduler: str, group: str
) -> None:
    """The kernel forgets these with bfq, and nothing could put them back."""
    machine = fake_sysfs.raid6(tmp_path)
    array = find_array("md0", machine.root)
    disk = tmp_path / "sys/block" / array.disks[0]
    number = (disk / "dev").read_text().strip()
    machine.put(f"sys/fs/cgroup/{file}", "default 250\n" + line.format(number))
    machine.put(f"sys/block/{disk.name}/queue/scheduler", f"none [{scheduler}]")
    left, said = left_alone(["read_ahead_kb", "scheduler"], array, tmp_path)
    assert left == ({"scheduler"} if group else set())
    assert (f"the control group {group} has weights for disks of /dev/md0" in said) == bool(group)
    assert left_alone(["read_ahead_kb"], array, tmp_path) == (frozenset(), "")
