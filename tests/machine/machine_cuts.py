"""Power cuts at random moments of a run, an `apply` and an `apply --persist`.

After each boot the settings are those of before, or all of what was asked for, and the next
command finds nothing in its way.
"""

import json
import random
import time

import pytest
from arrays import KEPT, KEPT_MORE, MAKE, READ, READ_MORE, has_cleaned_up, start_run
from emulator import Disks
from machine import Machine

READ_ALL = f"{READ}; {READ_MORE}"
FIRST = [*KEPT, *KEPT_MORE]
SECOND = ["512", "1024", "250000", "(local)", *["256"] * 4, "2.000", *["0"] * 4]
"""What the other profile sets, as it reads."""
KNOBS = {
    **{"stripe_cache_size": 512, "read_ahead_kb": 1024, "sync_speed_max": 250_000},
    **{"max_sectors_kb": 256, "safe_mode_delay": 2000, "rq_affinity": 0},
}


@pytest.fixture(scope="session")
def disks() -> Disks:
    """Small, since each cut may be followed by a resync; just large enough for a scratch file."""
    return Disks(mib=288)


@pytest.fixture(scope="session")
def is_installed() -> bool:
    return True


@pytest.fixture(scope="module")
def longest_s(machine: Machine) -> float:
    """The array with a profile persisted, the other profile beside it; how long `apply` takes."""
    machine.do(MAKE)
    other = json.loads(machine.do("cat /root/profile.json"))
    other |= {"name": "other", "knobs": KNOBS}
    machine.do(f"cat > /root/other.json <<'END'\n{json.dumps(other)}\nEND")
    machine.do("autotune service install")
    start = time.monotonic()
    machine.do("autotune apply /root/profile.json /dev/md0 --persist")
    seconds = time.monotonic() - start
    machine.do("sync")
    return seconds


def cut_after(machine: Machine, seconds: float) -> None:
    """What comes before a third of the time is the start of Python."""
    print(f"cut after {seconds:.1f} s")
    time.sleep(seconds)
    machine.cut()
    machine.boot()
    has_cleaned_up(machine)
    found = machine.do("systemctl show -P ConditionResult autotune-restore").strip()
    print("it was in the midst of it" if found == "yes" else "nothing was left to clean up")


def test_run(machine: Machine, longest_s: float, number: int) -> None:
    """A power cut in a run"""
    before = machine.do(READ_ALL).split()
    start_run(machine, "/dev/md0", "/data", "/root/workload.toml")
    cut_after(machine, random.Random(f"run {number}").uniform(0, 5 * longest_s))
    assert machine.do(READ_ALL).split() == before
    machine.do("autotune status && autotune doctor /dev/md0")


def test_apply(machine: Machine, longest_s: float, number: int) -> None:
    """A power cut in `apply`"""
    before = machine.do(READ_ALL).split()
    name = "other" if before == FIRST else "profile"
    machine.do(f"systemd-run --unit=cut autotune apply /root/{name}.json /dev/md0")
    cut_after(machine, random.Random(f"apply {number}").uniform(0.3 * longest_s, 1.1 * longest_s))
    assert machine.do(READ_ALL).split() == before
    machine.do("autotune status && autotune doctor /dev/md0")


def test_persist(machine: Machine, longest_s: float, number: int) -> None:
    """A power cut in `apply --persist`, over another profile that is persisted"""
    before = machine.do(READ_ALL).split()
    name, wanted = ("other", SECOND) if before == FIRST else ("profile", FIRST)
    machine.do(f"systemd-run --unit=cut autotune apply /root/{name}.json /dev/md0 --persist")
    cut_after(machine, random.Random(f"persist {number}").uniform(0.3 * longest_s, 1.1 * longest_s))
    now = machine.do(READ_ALL).split()
    assert now in (before, wanted)
    print("before" if now == before else "wanted")
    # Exit code 1 if what is persisted is not what reads.
    machine.do("autotune status && autotune doctor /dev/md0")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--cuts")))
