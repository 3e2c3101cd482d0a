"""In the lab: rebuilds of an array's last member, beside users who come and go.

First the array is known: what a rebuild at full speed takes, and the p99 without one, beside a slow
one, and beside one at full speed. The ceiling lies between the last two, and a deadline is some
times what full speed takes. Each rebuild is a row; those that are there are not measured again, and
what they know of the array holds.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autotune.system.array import Array, find_array
from benchmarks.forecast.rebuild import is_idle, mdadm, take_out, wait_for
from benchmarks.guard.users import Users, p99

QUIET_S = 40.0
SLOW, SLOW_S = 1 / 8, 70.0
"""As a share of full speed, and for so long: two half minutes."""
DATES = (2.0, 1 / SLOW)
"""How many times as long as at full speed a rebuild may take. With the second one, the speed that
is slow meets the deadline, and the ceiling is above the p99 beside it: so both are possible."""
LADDER = (0.15, 0.2, 0.3, 0.45, 0.6, 0.8)
"""Fixed limits, as shares of full speed."""
REPETITIONS = 3
POLICIES = ("foreground", "balanced", "rebuild")
LISTENS_S = 20.0
"""Until a guard that waits has started, in the lab."""
Row = dict[str, Any]
Step = Callable[[], Row]
"""One rebuild."""


@dataclass(frozen=True)
class Known:
    """What the rows are held against: seconds of a rebuild at full speed without users, its speed
    in KiB/s, and p99s in ns: without a sync, beside a slow one, and at full speed."""

    full_s: float
    full_kib_s: float
    quiet_ns: float
    slow_ns: float
    full_ns: float

    @property
    def ceiling_ns(self) -> float:
        return math.sqrt(self.slow_ns * self.full_ns)


def get_known(array: Array, iops: int) -> Known:
    """Measure all; it takes some three rebuilds at full speed."""
    quiet, slow, busy = (Users(array, iops, stay=True) for _ in range(3))
    until = time.monotonic() + QUIET_S
    quiet.watch(lambda: time.monotonic() > until)
    full_s = rebuilt(array, Users(array, 0))
    full_kib_s = member_kib(array) / full_s
    with limited(array, SLOW * full_kib_s):
        begin_rebuild(array)
        slow_until = time.monotonic() + SLOW_S
        slow.watch(lambda: time.monotonic() > slow_until)
    busy.watch(lambda: is_idle(array))
    return Known(full_s, full_kib_s, quiet.whole_p99(), slow.whole_p99(), busy.whole_p99())


def known_by(array: Array, row: Row) -> Known:
    """What an earlier row was held against."""
    full_kib_s = member_kib(array) / row["full_s"]
    p99s_ns = (row[f"{name}_ms"] * 1e6 for name in ("quiet", "slow", "full"))
    return Known(row["full_s"], full_kib_s, *p99s_ns)


def member_kib(array: Array) -> int:
    return int((array.md / "component_size").read_text())


@contextmanager
def limited(array: Array, kib_s: float) -> Iterator[None]:
    """With a fixed limit of the speed."""
    file = array.md / "sync_speed_max"
    file.write_text(str(round(kib_s)))
    try:
        yield
    finally:
        file.write_text("system")


def begin_rebuild(array: Array) -> None:
    """Put the last member in again."""
    member = f"/dev/{array.members[-1].name}"
    take_out(array, member)
    mdadm(array.device, "--add", member)
    wait_for(array, idle=False)


def rebuilt(array: Array, users: Users) -> float:
    """Put the last member in again beside the users; the seconds it takes."""
    begin_rebuild(array)
    began = time.monotonic()
    if users.iops:
        return users.watch(lambda: is_idle(array))
    wait_for(array, idle=True)
    return time.monotonic() - began


@contextmanager
def guarding(array: Array, words: Sequence[str], said: Path) -> Iterator[None]:
    """A guard of the sync that comes; what it says is in a file."""
    with TemporaryDirectory() as state, said.open("w") as file:
        command = (sys.executable, "-m", "autotune", "guard", array.device, "--wait", *words)
        with subprocess.Popen(
            (*command, "--state-dir", state),
            stdout=subprocess.DEVNULL, stderr=file, env=os.environ,
        ) as child:  # fmt: skip
            time.sleep(LISTENS_S)
            try:
                yield
            finally:
                child.terminate()


def row(name: str, known: Known, users: Users, seconds: float) -> Row:
    """What a rebuild was like. Latencies in ms."""
    held = sum(p99_ns <= known.ceiling_ns for p99_ns in users.p99s())
    came = sum(p99(window) <= known.ceiling_ns for window in users.arrivals)
    return {
        "name": name,
        "seconds": seconds,
        "full_s": known.full_s,
        "quiet_ms": known.quiet_ns / 1e6,
        "slow_ms": known.slow_ns / 1e6,
        "full_ms": known.full_ns / 1e6,
        "ceiling_ms": known.ceiling_ns / 1e6,
        "held": held,
        "windows": len(users.windows),
        "held_at_arrival": came,
        "arrivals": len(users.arrivals),
        "p99_ms": users.whole_p99() / 1e6,
    }


def guarded(array: Array, known: Known, users: Users, name: str, words: Sequence[str]) -> Row:
    """A rebuild under guard; `said` is what it told people."""
    with TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        with guarding(array, words, said):
            seconds = rebuilt(array, users)
        return {**row(name, known, users, seconds), "said": said.read_text()}


def fixed(array: Array, known: Known, users: Users, share: float) -> Row:
    """A rebuild at a fixed limit."""
    with limited(array, share * known.full_kib_s):
        return row(f"fixed {share:.0%}", known, users, rebuilt(array, users))


def dates(array: Array, known: Known, iops: int) -> list[Step]:
    """Under a ceiling and a deadline."""

    def within(times: float) -> Row:
        date_s = math.ceil(times * known.full_s)
        words = (f"--p99-ceiling={known.ceiling_ns / 1e6:.1f}ms", f"--finish-within={date_s}s")
        found = guarded(array, known, Users(array, iops), f"deadline ×{times:.0f}", words)
        return {**found, "date_s": date_s}

    return [partial(within, times) for times in DATES]


def ladder(array: Array, known: Known, iops: int) -> list[Step]:
    """Under a ceiling, beside fixed limits, in turn."""
    words = (f"--p99-ceiling={known.ceiling_ns / 1e6:.1f}ms",)

    def under_guard() -> Row:
        return guarded(array, known, Users(array, iops), "guard", words)

    def at(share: float) -> Row:
        return fixed(array, known, Users(array, iops), share)

    return [under_guard, *(partial(at, share) for share in LADDER)] * REPETITIONS


def policies(array: Array, known: Known, iops: int) -> list[Step]:
    """By the name of a policy, beside users who stay."""

    def by(policy: str) -> Row:
        users = Users(array, iops, stay=True)
        return guarded(array, known, users, policy, (f"--policy={policy}",))

    return [partial(by, policy) for policy in POLICIES]


PARTS = {"dates": dates, "ladder": ladder, "policies": policies}
ROWS = {
    "dates": len(DATES),
    "ladder": REPETITIONS * (1 + len(LADDER)),
    "policies": len(POLICIES),
}
"""How many rebuilds each part has."""


def read_rows(file: Path) -> list[Row]:
    """What is there of a part."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.guard.guest")
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--iops", type=int, required=True, help="of the users")
    parser.add_argument("--commit", required=True, help="the code that is measured")
    parser.add_argument("--out", type=Path, required=True, help="file for the rows")
    chosen = parser.parse_args()
    array = find_array("/dev/md0")
    done = read_rows(chosen.out)
    known = known_by(array, done[0]) if done else get_known(array, chosen.iops)
    name = f"{array.level}-{array.raid_disks}{array.media.value}"
    for step in PARTS[chosen.part](array, known, chosen.iops)[len(done) :]:
        text = json.dumps({"array": name, "commit": chosen.commit, **step()})
        print(text, flush=True)
        with chosen.out.open("a") as file:
            file.write(f"{text}\n")


if __name__ == "__main__":
    main()
