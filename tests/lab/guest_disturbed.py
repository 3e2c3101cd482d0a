"""A disturbance in the middle of a run, on raid6-hdd; `test_run.py` runs this there."""

import subprocess
from pathlib import Path

from guest import WRITE, Follower, knob_files

from autotune.knobs.stripe_cache import StripeCacheSize
from autotune.measure.workload import load_workload
from autotune.problem.figure import Estimate
from autotune.store import TrialRecord
from autotune.tuning.preparation import Options
from autotune.tuning.run import run

DISKS = ("vda", "vdb", "vdc", "vdd", "vde")
DISTURBANCE = """
[global]
rw=randread
bs=64k
direct=1
ioengine=libaio
iodepth=4
time_based=1
runtime=30
size=512m
"""


class Disturber(Follower):
    """Another load on the same disks for 30 s, from the last trial before the baseline returns."""

    def __init__(self, jobs: Path) -> None:
        super().__init__()
        self.jobs = jobs
        jobs.write_text(DISTURBANCE + "".join(f"[{d}]\nfilename=/dev/{d}\n" for d in DISKS))
        self.searched = 0
        self.load: subprocess.Popen[bytes] | None = None

    def trial(self, record: TrialRecord, gain: Estimate | None) -> None:
        self.searched += record.role == "search"
        if self.searched == 5 and self.load is None:
            self.load = subprocess.Popen(
                ("fio", "--readonly", "--output=/dev/null", str(self.jobs))
            )


def test_a_disturbance_changes_no_winner_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "write.toml"
    path.write_text(WRITE)
    before, follower = knob_files(), Disturber(tmp_path / "disturbance.fio")
    options = Options(
        "/dev/md0",
        load_workload(str(path)),
        strategy="random",
        trials=8,
        ram_budget=96 << 20,
        destructive="/dev/md0",
        knobs=(StripeCacheSize(),),
    )
    done = run(options, tmp_path, follower)
    assert follower.load is not None
    assert follower.load.wait(60) == 0
    result = done.result
    assert result.drifts["write.throughput"] < 0.9
    assert result.keep, result
    assert int(result.winner["stripe_cache_size"]) >= 1024
    assert knob_files() == before
