"""What the probe sees of a sync is what readers of their own see; on probe.toml, see
`test_run.py`."""

import json
import subprocess
from pathlib import Path

from guest import wait_until

from autotune.stats.histogram import at_rank
from benchmarks.raid10 import probed

SECONDS = 30
READERS = (
    *("fio", "--name=readers", "--filename=/dev/md0", "--readonly", "--rw=randread", "--bs=4k"),
    *("--direct=1", "--ioengine=psync", "--thread=1", "--numjobs=8", "--group_reporting=1"),
    *("--rate_iops=3", "--rate_process=poisson", "--norandommap=1", "--time_based=1"),
    *(f"--runtime={SECONDS}", "--output-format=json"),
)
"""Each waits for its own request alone."""


def test_readers_that_a_sync_keeps_waiting_are_seen_to_wait() -> None:
    md = Path("/sys/block/md0/md")
    (md / "sync_speed_max").write_text("200000")
    (md / "sync_action").write_text("check")
    wait_until(lambda: (md / "sync_speed").read_text().strip() != "none")
    with subprocess.Popen(READERS, stdout=subprocess.PIPE, text=True) as readers:
        seen = probed(20, SECONDS)
        said, _ = readers.communicate()
    assert (md / "sync_action").read_text().strip() == "check"
    theirs = json.loads(said)["jobs"][0]["read"]["clat_ns"]["percentile"]
    bins = sorted(seen.reads.items())
    for share, key in ((0.5, "50.000000"), (0.99, "99.000000")):
        ours = at_rank(bins, share * seen.requests)
        print(f"{key[:2]} %: {ours / 1e6:.0f} ms, readers {theirs[key] / 1e6:.0f} ms")
        # The half of libaio's requests took a tenth of that.
        assert theirs[key] / 3 < ours < 3 * theirs[key]
