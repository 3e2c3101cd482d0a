"""The simulated disks against arithmetic, in virtual time."""

import ctypes
import random
import shutil
from collections.abc import Callable, Iterator

import pytest
from disk_in_time import Disk, Request, load_model

from autotune.lab.scenario import HddGroup, SsdGroup

pytestmark = pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")

READ, WRITE, FLUSH = range(3)
KIB, MIB = 1024, 1024 * 1024
S, MS = 10**9, 10**6

HDD = HddGroup(kind="hdd", count=1).spec()
SSD = SsdGroup(kind="ssd", count=1).spec()
NewDisk = Callable[..., Disk]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return load_model(tmp_path_factory.mktemp("model"))


@pytest.fixture
def new_disk(library: ctypes.CDLL) -> Iterator[NewDisk]:
    disks: list[Disk] = []

    def new(spec: dict[str, int], **changes: int) -> Disk:
        disks.append(Disk(library, spec | changes))
        return disks[-1]

    yield new
    for disk in disks:
        library.disk_free(disk._disk)


def sequential(op: int, count: int, size: int, start: int = 0) -> list[Request]:
    return [Request(op, start + number * size, size) for number in range(count)]


def scattered(op: int, count: int, size: int = 4 * KIB) -> list[Request]:
    draw = random.Random(1)
    blocks = HDD["size"] // size
    return [Request(op, draw.randrange(blocks) * size, size) for _ in range(count)]


class TestHdd:
    @pytest.mark.parametrize("depth", [1, 4, 32])
    @pytest.mark.parametrize("size", [4 * KIB, 64 * KIB, MIB])
    def test_sequential_reads_run_at_the_rate_of_the_platter(
        self, new_disk: NewDisk, size: int, depth: int
    ) -> None:
        # Look-ahead may be as far in front of the reader as its limit.
        count = 64 * MIB // size
        elapsed = new_disk(HDD).stream(sequential(READ, count, size), depth)
        assert count * size / elapsed * S == pytest.approx(HDD["rate"], rel=0.05)

    @pytest.mark.parametrize(
        ("place", "share"), [(0.0, 1.0), (0.25, 0.901), (0.5, 0.791), (0.97, 0.52)]
    )
    def test_a_disk_may_be_slower_inside(
        self, new_disk: NewDisk, place: float, share: float
    ) -> None:
        # The square of the rate falls evenly from place to place: here from 1 to a quarter.
        disk, start = new_disk(HDD, inner_rate=HDD["rate"] // 2), int(place * 1024) * MIB
        disk.do(READ, start, MIB)
        elapsed = disk.stream(sequential(READ, 24, MIB, start + MIB), 8)
        assert 24 * MIB / elapsed * S == pytest.approx(share * HDD["rate"], rel=0.07)

    def test_over_all_of_a_disk_the_rate_falls_as_on_a_spiral(self, new_disk: NewDisk) -> None:
        elapsed = new_disk(HDD, inner_rate=HDD["rate"] // 2).stream(sequential(READ, 1024, MIB), 8)
        # In time it falls evenly, so the mean is that of the first rate and the last.
        assert 1024 * MIB / elapsed * S == pytest.approx(0.75 * HDD["rate"], rel=0.02)

    @pytest.mark.parametrize("size", [64 * KIB, MIB])
    def test_sequential_writes_run_at_the_rate_of_the_platter(
        self, new_disk: NewDisk, size: int
    ) -> None:
        disk = new_disk(HDD)
        elapsed = disk.stream(sequential(WRITE, 256 * MIB // size, size), 8)
        elapsed += disk.do(FLUSH, 0, 0)
        assert 256 * MIB / elapsed * S == pytest.approx(HDD["rate"], rel=0.05)

    def test_a_lone_random_read_costs_seek_half_a_rotation_and_transfer(
        self, new_disk: NewDisk
    ) -> None:
        count = 2000
        elapsed = new_disk(HDD).stream(scattered(READ, count), 1)
        expected = HDD["seek_ns"] + HDD["rotation_ns"] / 2 + 4 * KIB * S / HDD["rate"]
        assert elapsed / count == pytest.approx(expected, rel=0.05)

    def test_a_full_queue_is_reordered_to_clear_advantage(self, new_disk: NewDisk) -> None:
        alone = new_disk(HDD).stream(scattered(READ, 2000), 1)
        queued = new_disk(HDD).stream(scattered(READ, 2000), 32)
        assert 1.5 < alone / queued < 5

    def test_reordering_starves_nobody(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD)
        far = disk.submit(READ, HDD["size"] - 4 * KIB, 4 * KIB)
        draw = random.Random(2)
        others = {disk.submit(READ, draw.randrange(1000) * 4 * KIB, 4 * KIB) for _ in range(31)}
        while (done := disk.wait()) != far:
            others.remove(done)
            others.add(disk.submit(READ, draw.randrange(1000) * 4 * KIB, 4 * KIB))
        assert disk.now < 1 * S

    def test_a_stream_that_comes_slightly_out_of_order_stays_sequential(
        self, new_disk: NewDisk
    ) -> None:
        size = 128 * KIB
        requests = sequential(READ, 512, size)
        for pair in range(0, 512, 2):
            requests[pair], requests[pair + 1] = requests[pair + 1], requests[pair]
        elapsed = new_disk(HDD).stream(requests, 4)
        assert 512 * size / elapsed * S == pytest.approx(HDD["rate"], rel=0.1)

    def test_a_short_skip_forward_costs_what_passing_over_it_costs(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD, lookahead=0)
        disk.do(READ, 0, 64 * KIB)
        assert disk.do(READ, 128 * KIB, 64 * KIB) == pytest.approx(
            128 * KIB * S / HDD["rate"], abs=1000
        )

    def test_a_read_that_was_looked_ahead_comes_from_the_buffer(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD)
        disk.do(READ, 0, 64 * KIB)
        disk.now += 20 * MS
        assert disk.do(READ, 64 * KIB, 64 * KIB) < 1 * MS

    def test_a_write_is_done_when_it_is_in_the_cache(self, new_disk: NewDisk) -> None:
        assert new_disk(HDD).do(WRITE, 512 * MIB, 64 * KIB) < 1 * MS

    def test_without_a_cache_a_write_waits_for_the_platter(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD, cache=0)
        elapsed = disk.stream(scattered(WRITE, 2000), 1) / 2000
        expected = HDD["seek_ns"] + HDD["rotation_ns"] / 2 + 4 * KIB * S / HDD["rate"]
        assert elapsed == pytest.approx(expected, rel=0.05)

    def test_a_flush_waits_for_all_that_is_in_the_cache(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD)
        for number in range(10):
            disk.do(WRITE, number * 64 * MIB, 4 * KIB)
        assert disk.do(FLUSH, 0, 0) > 10 * HDD["rotation_ns"] / 4
        assert disk.do(FLUSH, 0, 0) < 1 * MS

    def test_random_writes_gain_from_the_sorted_cache(self, new_disk: NewDisk) -> None:
        reads = new_disk(HDD).stream(scattered(READ, 8000), 1)
        disk = new_disk(HDD)
        writes = disk.stream(scattered(WRITE, 8000), 1) + disk.do(FLUSH, 0, 0)
        assert 1.5 < reads / writes < 10

    def test_reads_go_before_cached_writes_but_do_not_stop_them(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD, cache=MIB)
        writes = {disk.submit(*request) for request in scattered(WRITE, 20, 64 * KIB)}
        waiting = {disk.submit(*request) for request in scattered(READ, 4)}
        reads = 0
        while writes:
            done = disk.wait()
            writes.discard(done)
            if done in waiting:
                reads += 1
                waiting = waiting - {done} | {disk.submit(READ, done * 977 * 4096 % 2**30, 4096)}
        assert reads > 0
        assert disk.now < 1 * S

    def test_data_in_the_cache_is_read_from_it(self, new_disk: NewDisk) -> None:
        disk = new_disk(HDD)
        for number in range(20):
            disk.do(WRITE, number * 32 * MIB, 4 * KIB)
        assert disk.do(READ, 19 * 32 * MIB, 4 * KIB) < 1 * MS


class TestSsd:
    def test_a_lone_read_takes_latency_and_transfer(self, new_disk: NewDisk) -> None:
        channel_rate = SSD["rate"] * 2 / SSD["channels"]
        expected = SSD["read_ns"] + 4 * KIB * S / channel_rate
        assert new_disk(SSD).do(READ, 0, 4 * KIB) == pytest.approx(expected, rel=0.01)

    def test_channels_work_in_parallel(self, new_disk: NewDisk) -> None:
        alone = new_disk(SSD).stream(scattered(READ, 4000), 1)
        queued = new_disk(SSD).stream(scattered(READ, 4000), 32)
        assert SSD["channels"] * 0.6 < alone / queued <= SSD["channels"]

    @pytest.mark.parametrize("op", [READ, WRITE])
    def test_the_link_is_the_cap(self, new_disk: NewDisk, op: int) -> None:
        elapsed = new_disk(SSD).stream(sequential(op, 256, MIB), 8)
        assert 256 * MIB / elapsed * S == pytest.approx(SSD["rate"], rel=0.05)

    def test_long_writes_fall_to_the_sustained_rate(self, new_disk: NewDisk) -> None:
        disk = new_disk(SSD, burst=64 * MIB)
        disk.stream(sequential(WRITE, 256, MIB), 8)
        elapsed = disk.stream(sequential(WRITE, 256, MIB, 256 * MIB), 8)
        assert 256 * MIB / elapsed * S == pytest.approx(SSD["sustained"], rel=0.05)

    def test_rest_gives_the_burst_back(self, new_disk: NewDisk) -> None:
        disk = new_disk(SSD, burst=64 * MIB)
        disk.stream(sequential(WRITE, 256, MIB), 8)
        disk.now += 64 * MIB * S // SSD["sustained"] + S
        elapsed = disk.stream(sequential(WRITE, 64, MIB), 8)
        assert 64 * MIB / elapsed * S == pytest.approx(SSD["rate"], rel=0.05)


@pytest.mark.parametrize("spec", [HDD, SSD], ids=["hdd", "ssd"])
@pytest.mark.parametrize("factor", [0.01, 2.0, 5.0])
def test_a_slow_disk_is_slower_by_its_factor(
    new_disk: NewDisk, spec: dict[str, int], factor: float
) -> None:
    requests = [*scattered(READ, 50), *sequential(READ, 50, 64 * KIB)]
    usual = new_disk(spec).stream(requests, 4)
    slow = new_disk(spec)
    slow.slow_down(factor)
    assert slow.stream(requests, 4) / usual == pytest.approx(factor, rel=0.001)


@pytest.mark.parametrize("spec", [HDD, SSD], ids=["hdd", "ssd"])
def test_no_request_is_lost_or_answered_twice(new_disk: NewDisk, spec: dict[str, int]) -> None:
    draw = random.Random(3)
    disk = new_disk(spec)
    waiting: set[int] = set()
    for _ in range(5000):
        if len(waiting) < 40 and draw.random() < 0.6:
            op = draw.choices((READ, WRITE, FLUSH), (50, 49, 1))[0]
            size = draw.choice((4, 16, 512)) * KIB
            offset = draw.randrange((spec["size"] - size) // 4096) * 4096
            waiting.add(disk.submit(op, *((0, 0) if op == FLUSH else (offset, size))))
        elif waiting:
            waiting.remove(disk.wait())
        else:
            disk.now += draw.randrange(20 * MS)
    while waiting:
        waiting.remove(disk.wait())
