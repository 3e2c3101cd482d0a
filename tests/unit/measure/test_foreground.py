"""Whose requests a guard protects: those of the array, and of the arrays on the same disks."""

import contextlib
import math
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest

from autotune.measure import foreground_probe
from autotune.measure.foreground import ACCOUNTING, PROBE, Foreground
from autotune.system.array import find_array
from autotune.system.neighbours import sharing

STAT = "{reads} 0 0 {ms} {writes} 0 0 0 {in_flight} 0 0"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fake_sysfs.FakeMachine:
    """md0 on the first partitions of three disks, md1 on the second ones, md2 on others."""
    machine = fake_sysfs.FakeMachine(tmp_path)
    for disk in ("sda", "sdb", "sdc", "sdx", "sdy", "sdz"):
        machine.disk(disk)
    for number, name in enumerate(("md0", "md1"), 1):
        parts = [f"{disk}{number}" for disk in ("sda", "sdb", "sdc")]
        for part in parts:
            machine.partition(part[:3], part)
        machine.array(name, "raid5", parts)
    machine.array("md2", "raid5", ["sdx", "sdy", "sdz"])
    for name in ("md0", "md1", "md2"):
        count(machine, name, 0, 0)
    monkeypatch.setattr(foreground_probe, "ForegroundProbe", lambda *_: pytest.fail("a probe"))
    return machine


def count(machine: fake_sysfs.FakeMachine, name: str, reads: int, ms: int, writes: int = 0) -> None:
    in_flight = reads % 2 if ms else 0
    # This kernel counts those that have begun.
    text = STAT.format(reads=reads + in_flight, ms=ms, writes=writes, in_flight=in_flight)
    machine.put(f"sys/block/{name}/stat", text)


def watched(machine: fake_sysfs.FakeMachine, busy: str, seconds: int = 20) -> Foreground:
    """What is seen of md0 while an array answers ten reads a second, in 50 ms each."""
    found = Foreground(find_array("md0", machine.root), math.inf)
    for number in range(seconds * 10):
        count(machine, busy, number, number * 50)
        found.look(number / 10)
    return found


@pytest.mark.parametrize(("busy", "seen"), [("md0", True), ("md1", True), ("md2", False)])
def test_the_users_of_an_array_on_the_same_disks_count(
    machine: fake_sysfs.FakeMachine, busy: str, seen: bool
) -> None:
    found = watched(machine, busy)
    assert found.busy == seen
    p99, sampled = found.p99()
    assert (p99 is not None) == seen
    assert (sampled > 100) == seen
    if p99 is not None:
        assert p99.likely == pytest.approx(50e6, rel=0.02)


@pytest.mark.parametrize(
    ("reads", "writes", "every_s", "busy"),
    [
        (0, 12, 5, False),
        (0, 1, 1, True),
        (0, 20, 5, True),
        (0, 20, 3, True),
        (6, 0, 5, True),
        (2, 2, 5, False),
    ],
)
def test_what_a_filesystem_commits_is_nobody_who_waits(
    machine: fake_sysfs.FakeMachine, reads: int, writes: int, every_s: int, busy: bool
) -> None:
    """Such as a guard's own metrics, if they lie on the array."""
    found, seen, times = Foreground(find_array("md0", machine.root), math.inf), [], 0
    for number in range(300):
        if number % (10 * every_s) == 5:
            times += 1
            count(machine, "md0", reads * times, 0, writes * times)
        found.look(number / 10)
        seen.append(found.busy)
    assert set(seen[100:]) == {busy}


def test_users_who_ask_in_bursts_stay(machine: fake_sysfs.FakeMachine) -> None:
    """Else each burst would come just when the sync goes at full speed again."""
    found, writes, rng, seen = (
        Foreground(find_array("md0", machine.root), math.inf),
        0,
        random.Random(7),
        [],
    )
    for number in range(3000):
        # Transactions of ten requests, one in two seconds.
        writes += 10 * (rng.random() < 0.05)
        count(machine, "md0", 0, 0, writes)
        found.look(number / 10)
        seen.append(found.busy)
    assert sum(seen[100:]) > 0.85 * len(seen[100:])
    for number in range(3000, 3500):
        found.look(number / 10)
    assert not found.busy


def test_few_reads_that_wait_long_are_somebodys(machine: fake_sysfs.FakeMachine) -> None:
    """It may be the sync that makes them few."""
    found, seen = Foreground(find_array("md0", machine.root), math.inf), []
    for number in range(600):
        reads = number // 20 if number < 160 else 2 * (number // 40)
        count(machine, "md0", reads, 1000 * min(reads, 8))
        found.look(number / 10)
        seen.append(found.busy)
    assert all(seen[60:150])
    assert not seen[-1]


@pytest.mark.parametrize(("level", "busy"), [("raid5", False), ("raid1", True), ("raid10", True)])
def test_where_waiting_is_not_counted_each_read_is_somebodys(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch, level: str, busy: bool
) -> None:
    """There the sync may hold a read for seconds before its time is counted."""
    monkeypatch.setattr(
        foreground_probe, "ForegroundProbe", lambda *_: contextlib.nullcontext(NoProbe)
    )
    machine.put("sys/block/md0/md/level", level)
    found = Foreground(find_array("md0", machine.root), math.inf)
    for number in range(100):
        count(machine, "md0", number // 70, 10 * (number // 70))
        found.look(number / 10)
    assert found.busy == busy


def test_one_that_is_assembled_meanwhile_is_seen(machine: fake_sysfs.FakeMachine) -> None:
    machine.put("sys/block/md1/md/array_state", "inactive")
    found = watched(machine, "md1", seconds=5)
    assert not found.busy
    machine.put("sys/block/md1/md/array_state", "clean")
    for number in range(50, 300):
        count(machine, "md1", number, number * 50)
        found.look(number / 10)
    assert found.busy


@pytest.mark.parametrize("whose", ["md0", "md1"])
def test_a_member_that_has_failed_is_no_disk_that_is_shared(
    machine: fake_sysfs.FakeMachine, whose: str
) -> None:
    """md lists it until it is removed."""
    for name in ("sda", "sdb", "sdc"):
        number = "1" if whose == "md0" else "2"
        machine.put(f"sys/block/{whose}/md/dev-{name}{number}/state", "faulty")
    assert sharing(find_array("md0", machine.root)) == []
    assert not watched(machine, "md1").busy


def test_one_that_shares_no_disk_any_more_is_let_go(machine: fake_sysfs.FakeMachine) -> None:
    found = watched(machine, "md1", seconds=30)
    assert found.busy
    for name in ("sda2", "sdb2", "sdc2"):
        machine.put(f"sys/block/md1/md/dev-{name}/state", "faulty")
    for number in range(300, 1000):
        count(machine, "md1", number, number * 50)
        found.look(number / 10)
    assert not found.busy


def test_who_comes_back_soon_is_waited_for(machine: fake_sysfs.FakeMachine) -> None:
    """For a while, and no longer."""
    found, seen = Foreground(find_array("md0", machine.root), math.inf), []
    for number in range(2000):
        # Four seconds of ten reads a second, from a minute on never again.
        asked = sum(n % 240 < 40 for n in range(min(number, 600)))
        count(machine, "md0", asked, asked * 50)
        found.look(number / 10)
        seen.append(found.busy)
    assert not all(seen[40:240])
    assert all(seen[260:600])
    assert not any(seen[1200:])


def test_what_is_written_back_each_half_minute_keeps_no_sync_slow(
    machine: fake_sysfs.FakeMachine,
) -> None:
    """As a filesystem does that nobody uses any more."""
    found, seen = Foreground(find_array("md0", machine.root), math.inf), []
    for number in range(3000):
        # Somebody reads in bursts for two minutes, and is gone.
        reads = sum(n % 240 < 40 for n in range(min(number, 1200)))
        count(machine, "md0", reads, reads * 50, 20 * (number // 300))
        found.look(number / 10)
        seen.append(found.busy)
    assert sum(seen[1800:]) < 0.4 * len(seen[1800:])


def test_an_array_that_lies_on_it_is_not_counted_twice(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    assert [other.name for other in sharing(array)] == ["md1"]
    machine.array("md3", "raid0", ["md0", "md1"])
    assert [other.name for other in sharing(find_array("md0", machine.root))] == ["md1"]
    assert sharing(find_array("md3", machine.root)) == []


@pytest.mark.parametrize("array", ["md0", "md1"])
def test_who_is_not_counted_may_be_there(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch, array: str
) -> None:
    """From the start, or since somebody has turned the counters off."""
    monkeypatch.setattr(
        foreground_probe, "ForegroundProbe", lambda *_: contextlib.nullcontext(NoProbe)
    )
    found = watched(machine, "md2")
    assert (found.busy, found.source) == (False, ACCOUNTING)
    machine.put(f"sys/block/{array}/queue/iostats", "0")
    for number in range(100):
        found.look(30 + number / 10)
    assert (found.busy, found.source) == (True, PROBE)
    assert watched(machine, "md2").source == PROBE


class LateProbe:
    """Reads 100 a second, and tells of it after up to a second, as on a machine that is busy."""

    def __init__(self, machine: fake_sysfs.FakeMachine, asked: list[int]) -> None:
        self.machine, self.asked, self.rng = machine, asked, random.Random(3)
        self.looks = self.told = self.read = 0

    def __enter__(self) -> "LateProbe":
        return self

    def __exit__(self, *_: object) -> None: ...

    def look(self) -> SimpleNamespace | None:
        """To be called ten times a second."""
        self.looks, self.read = self.looks + 1, self.read + 10
        count(self.machine, "md0", self.asked[0] + self.read, 5 * (self.asked[0] + self.read))
        if self.looks % 10:
            return None
        new = self.read - self.rng.randrange(100) - self.told
        self.told += new
        return SimpleNamespace(requests=new, reads={1_000_000: new})


def test_the_reads_of_the_probe_are_nobodys(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.put("sys/block/md0/md/level", "raid10")
    asked, probes = [0], []

    def probe(*_: object) -> LateProbe:
        probes.append(LateProbe(machine, asked))
        return probes[-1]

    monkeypatch.setattr(foreground_probe, "ForegroundProbe", probe)
    found, seen = Foreground(find_array("md0", machine.root), 0), []
    for number in range(900):
        # Somebody reads for ten seconds, and leaves.
        asked[0] += 2 * (number < 100)
        if found.source == ACCOUNTING:
            reads = asked[0] + sum(each.read for each in probes)
            count(machine, "md0", reads, 5 * reads)
        found.look(number / 10)
        seen.append(found.busy)
    assert all(seen[20:100])
    assert not any(seen[850:])


class NoProbe:
    """One that has not read anything yet."""

    @staticmethod
    def look() -> None:
        return None


def test_one_that_is_stopped_meanwhile_is_forgotten(machine: fake_sysfs.FakeMachine) -> None:
    found = watched(machine, "md1")
    assert found.busy
    shutil.rmtree(machine.root / "sys/block/md1")
    for number in range(100):
        found.look(30 + number / 10)
    assert not found.busy


def test_an_array_whose_counters_do_not_tell_is_probed_only_while_it_is_used(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RAID 1 counts only what the sync has let pass."""
    machine.put("sys/block/md1/md/level", "raid1")
    count(machine, "md1", 1, 5)
    found = watched(machine, "md0")
    assert found.source == ACCOUNTING
    # A line of a log there is nobody's, either.
    for number in range(200, 400):
        count(machine, "md0", number, number * 50)
        count(machine, "md1", 1, 5, writes=(number - 200) // 30)
        found.look(number / 10)
    assert found.source == ACCOUNTING
    count(machine, "md0", 0, 0)
    probes = []

    class Probe:
        def __init__(self, *_: object) -> None:
            probes.append(self)

        def __enter__(self) -> "Probe":
            return self

        def __exit__(self, *_: object) -> None: ...

        def look(self) -> None: ...

    monkeypatch.setattr(foreground_probe, "ForegroundProbe", Probe)
    assert watched(machine, "md1").source == PROBE
    assert len(probes) == 1


@pytest.mark.parametrize(("ceiling_ms", "source"), [(math.inf, PROBE), (1e6, ACCOUNTING)])
def test_a_p99_that_is_told_is_not_read_from_requests_that_overlap(
    machine: fake_sysfs.FakeMachine,
    monkeypatch: pytest.MonkeyPatch,
    ceiling_ms: float,
    source: str,
) -> None:
    """With some always in flight, one of those that ended together may have taken the time of all.
    Under a ceiling far away, that does not matter."""
    monkeypatch.setattr(
        foreground_probe, "ForegroundProbe", lambda *_: contextlib.nullcontext(NoProbe)
    )
    found = Foreground(find_array("md0", machine.root), ceiling_ms * 1e6)
    for number in range(250):
        ended = 8 * number
        text = STAT.format(reads=ended + 8, ms=ended * 100, writes=0, in_flight=8)
        machine.put("sys/block/md0/stat", text)
        found.look(number / 10)
    assert found.source == source
