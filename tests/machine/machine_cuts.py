"""Power cuts at random moments of a run, an `apply` and an `apply --persist`.

After each boot the settings are those of before, or all of what was asked for, and the next
command finds nothing in its way.
"""

import json
import random
import time
from pathlib import Path

import pytest
from arrays import KEPT, MAKE, READ, has_cleaned_up
from machine import COMMAND_S, Machine
from ways import Way

SECOND = ["512", "1024", "250000", "(local)", *["256"] * 4]
"""What the other profile sets, as it reads."""
KNOBS = ("stripe_cache_size", "read_ahead_kb", "sync_speed_max", "max_sectors_kb")


@pytest.fixture(scope="module")
def longest_s(machine: Machine, way: Way) -> float:
    """The array with a profile persisted, the other profile beside it; how long `apply` takes."""
    machine.do(f"{way.install} && {MAKE}", timeout_s=2 * COMMAND_S)
    other = json.loads((Path(__file__).parent / "profile.json").read_text())
    numbers = [text for text in SECOND if text.isdigit()]
    other |= {"name": "other", "knobs": dict(zip(KNOBS, map(int, numbers), strict=False))}
    machine.do(f"cat > /root/other.json <<'END'\n{json.dumps(other)}\nEND")
    machine.do("autotune service install")
    start = time.monotonic()
    machine.do("autotune apply /root/profile.json /dev/md0 --persist")
    seconds = time.monotonic() - start
    machine.do("sync")
    return seconds


def cut_after(machine: Machine, seconds: float) -> None:
    print(f"cut after {seconds:.1f} s")
    time.sleep(seconds)
    machine.cut()
    machine.boot()
    has_cleaned_up(machine)


def test_run(machine: Machine, longest_s: float, number: int) -> None:
    """A power cut in a run"""
    before = machine.do(READ).split()
    machine.do(
        "systemd-run --unit=cut autotune run /dev/md0 --workload /root/workload.toml --trials 8 "
        "--time 2h"
    )
    machine.until("ls -d /data/.autotune-*")
    cut_after(machine, random.Random(f"run {number}").uniform(0, 5 * longest_s))
    assert machine.do(READ).split() == before
    machine.do("autotune status && autotune doctor /dev/md0")


def test_apply(machine: Machine, longest_s: float, number: int) -> None:
    """A power cut in `apply`"""
    before = machine.do(READ).split()
    name = "other" if before == KEPT else "profile"
    machine.do(f"systemd-run --unit=cut autotune apply /root/{name}.json /dev/md0")
    cut_after(machine, random.Random(f"apply {number}").uniform(0, 1.2 * longest_s))
    assert machine.do(READ).split() == before
    machine.do("autotune status && autotune doctor /dev/md0")


def test_persist(machine: Machine, longest_s: float, number: int) -> None:
    """A power cut in `apply --persist`, over another profile that is persisted"""
    before = machine.do(READ).split()
    name, wanted = ("other", SECOND) if before == KEPT else ("profile", KEPT)
    machine.do(f"systemd-run --unit=cut autotune apply /root/{name}.json /dev/md0 --persist")
    cut_after(machine, random.Random(f"persist {number}").uniform(0, 1.2 * longest_s))
    now = machine.do(READ).split()
    assert now in (before, wanted)
    print("before" if now == before else "wanted")
    # Exit code 1 if what is persisted is not what reads.
    machine.do("autotune status && autotune doctor /dev/md0")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--cuts")))
