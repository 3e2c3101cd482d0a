"""python -m benchmarks.guard.stripe_cache: what users feel of a stripe cache that a sync enlarges.

In the lab, beside a rebuild at an eighth of its full speed: with the cache as a rebuild at full
speed has left it, and then with its size written again every few seconds.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event, Thread

from rich.console import Console
from rich.table import Table

from autotune.guard.stripe_cache import EACH_S
from autotune.system.array import Array, find_array
from benchmarks.guard.guest import SLOW, begin_rebuild, limited, member_kib, rebuilt
from benchmarks.guard.users import Users

LOAD_S = 40
ONE_A_SECOND = ("--rate_iops=1", "--ioengine=psync", "--group_reporting", "--norandommap")
"""Each waits for its own request alone."""
USERS = {
    "15 reads/s": ("--rw=randread", "--bs=4k", "--numjobs=15", *ONE_A_SECOND),
    "10 writes/s": ("--rw=randwrite", "--bs=4k", "--numjobs=10", *ONE_A_SECOND),
    "a stream of writes": ("--rw=write", "--bs=1M", "--iodepth=8", "--ioengine=libaio"),
}


@contextmanager
def kept_small(array: Array) -> Iterator[None]:
    """As the guard does it."""
    file, over = array.md / "stripe_cache_size", Event()

    def write() -> None:
        while not over.is_set():
            file.write_text(file.read_text())
            over.wait(EACH_S)

    thread = Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def stripes(array: Array) -> int:
    """How many there are, which the size that is set does not say."""
    lines = (line.split() for line in Path("/proc/slabinfo").read_text().splitlines())
    return next(int(words[1]) for words in lines if words[0] == f"{array.level}-{array.name}")


def felt(array: Array, words: tuple[str, ...]) -> tuple[float, float]:
    """What fio says of such users: MB/s, and the p99 in ms of all that a request waits."""
    how = (
        "--direct=1 --invalidate=0 --thread --time_based --lat_percentiles=1 "
        f"--clat_percentiles=0 --output-format=json --runtime={LOAD_S}"
    )
    command = ("fio", "--name=users", f"--filename={array.device}", *how.split(), *words)
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    job = json.loads(done.stdout)["jobs"][0]
    side = job["read" if "randread" in words[0] else "write"]
    return side["bw_bytes"] / 1e6, side["lat_ns"]["percentile"]["99.000000"] / 1e6


def main() -> None:
    array = find_array("/dev/md0")
    full_s = rebuilt(array, Users(array, 0))
    table = Table("users", "stripe cache", "speed", "p99", box=None)
    with limited(array, SLOW * member_kib(array) / full_s):
        begin_rebuild(array)
        time.sleep(30)
        for kept in (nullcontext(), kept_small(array)):
            with kept:
                for users, words in USERS.items():
                    speed, p99 = felt(array, words)
                    table.add_row(users, f"{stripes(array)}", f"{speed:.2f} MB/s", f"{p99:.0f} ms")
    Console().print(table)


if __name__ == "__main__":
    main()
