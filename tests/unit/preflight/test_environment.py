from pathlib import Path

import fake_sysfs

from autotune.preflight.environment import environment
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
