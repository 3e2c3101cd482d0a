"""What the probe sees of a sync is what readers of their own see; on probe.toml, see
`test_run.py`."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import wait_until

from autotune.stats.histogram import Histogram, at_rank
from benchmarks.raid10 import probed

SECONDS = 30
READERS = (
    *("fio", "--name=readers", "--filename=/dev/md0", "--readonly", "--rw=randread", "--bs=4k"),
    *("--direct=1", "--ioengine=psync", "--thread=1", "--numjobs=24", "--group_reporting=1"),
    *("--rate_iops=1", "--rate_process=poisson", "--norandommap=1", "--time_based=1"),
    *("--invalidate=0", "--output-format=json+"),
)
"""Each waits for its own request alone."""
MD = Path("/sys/block/md0/md")
SLOW_NS = 200e6


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Iterator[None]:
    """A check at no more than so many KiB/s of each member."""
    (MD / "sync_speed_max").write_text(str(request.param))
    (MD / "sync_action").write_text("check")
    wait_until(lambda: (MD / "sync_speed").read_text().strip() != "none")
    yield
    assert (MD / "sync_action").read_text().strip() == "check"
    (MD / "sync_action").write_text("idle")
    wait_until(lambda: (MD / "sync_action").read_text().strip() == "idle")
    (MD / "sync_min").write_text("0")


def seen_by_both(seconds: int) -> tuple[Histogram, Histogram]:
    """How long requests took, as the probe and as the readers see it."""
    command = (*READERS, f"--runtime={seconds}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as readers:
        ours = probed(20, seconds).reads
        said, _ = readers.communicate()
    bins = json.loads(said)["jobs"][0]["read"]["clat_ns"]["bins"]
    return ours, {int(ns): count for ns, count in bins.items()}


@pytest.mark.parametrize("check", [200_000], indirect=True)
def test_readers_that_a_sync_keeps_waiting_are_seen_to_wait(check: None) -> None:
    ours, theirs = seen_by_both(SECONDS)
    for share in (0.5, 0.99):
        mine, felt = (
            at_rank(sorted(bins.items()), share * sum(bins.values())) for bins in (ours, theirs)
        )
        print(f"{share:.0%}: {mine / 1e6:.0f} ms, readers {felt / 1e6:.0f} ms")
        # The half of libaio's requests took a tenth of that.
        assert felt / 3 < mine < 3 * felt


@pytest.mark.parametrize("check", [2500], indirect=True)
def test_all_who_wait_for_a_burst_are_counted(check: None) -> None:
    """A check of RAID 10 that is held goes on by 32 MiB and sleeps. fio that waits for what is
    under way before it sends more sees one slow request where there are dozens."""
    ours, theirs = (
        sum(count for ns, count in bins.items() if ns > SLOW_NS) / sum(bins.values())
        for bins in seen_by_both(2 * SECONDS)
    )
    print(f"slow: {ours:.1%}, readers {theirs:.1%}")
    assert theirs > 0.03
    # Readers who wait for themselves see fewer than come.
    assert theirs / 2 < ours < 2.5 * theirs
