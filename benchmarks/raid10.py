"""What readers of a RAID 10 feel of a check and of a rebuild: `make bench-raid10`, in the lab.

python -m benchmarks.raid10 RATE_IOPS MEMBER,MEMBER,… SPARE
"""

import subprocess
import sys
import time
from pathlib import Path

from autotune.measure.fio import Fio
from autotune.measure.fio_command import Job, Target
from autotune.measure.fio_output import Counters
from autotune.measure.workload import Probe
from autotune.stats.histogram import at_rank

MD = Path("/sys/block/md0/md")
SECONDS = 20
KERNELS_MAX_KIB = 200_000


def main() -> None:
    """Print a line for each, at full speed."""
    rate_iops, member = int(sys.argv[1]), sys.argv[2]
    felt("no sync", rate_iops)
    (MD / "sync_speed_max").write_text(str(KERNELS_MAX_KIB))
    (MD / "sync_action").write_text("check")
    time.sleep(3)
    felt("check", rate_iops)
    (MD / "sync_action").write_text("idle")
    time.sleep(1)
    # Added, not re-added: it is copied whole.
    for change in (
        ("/dev/md0", "--fail", member),
        ("/dev/md0", "--remove", member),
        ("--zero-superblock", member),
        ("/dev/md0", "--add", member),
    ):
        subprocess.run(["mdadm", *change], check=True, capture_output=True)
        time.sleep(1)
    time.sleep(2)
    felt("rebuild", rate_iops)


def probed(rate_iops: int, seconds: float = SECONDS) -> Counters:
    """What autotune's own probe sees in so many seconds."""
    size_bytes = int(Path("/sys/block/md0/size").read_text()) * 512
    job = Job("probe", Probe(rate_iops=rate_iops), Target(Path("/dev/md0"), size_bytes))
    seen: Counters | None = None
    end_s = time.monotonic() + seconds
    with Fio([job], seconds, seed=1) as fio:
        while time.monotonic() < end_s:
            heard = fio.poll(1.0)
            seen = heard["probe"] if heard else seen
    if seen is None:
        raise SystemExit("fio said nothing.")
    return seen


def felt(name: str, rate_iops: int) -> None:
    seen = probed(rate_iops)
    bins = sorted(seen.reads.items())
    p50, p99 = (at_rank(bins, share * seen.requests) / 1e6 for share in (0.5, 0.99))
    speed = (MD / "sync_speed").read_text().strip()
    mib = f"{int(speed) / 1024:.0f} MiB/s" if speed.isdigit() else "–"
    print(f"{name:8} {mib:>10}  p50 {p50:4.0f} ms  p99 {p99:5.0f} ms", flush=True)


if __name__ == "__main__":
    main()
