"""Every knob, on fake arrays of several levels."""

import itertools
from dataclasses import dataclass
from pathlib import Path

import fake_sysfs
import pytest

from autotune import knobs
from autotune.errors import InfeasibleError
from autotune.knobs import Knob, iosched
from autotune.system import sysfs
from autotune.system.array import Array, find_array

MEMORY = 256 << 20
NAMES = [knob.name for knob in knobs.ALL if knob.name != "sync_io_depth"]
ON_RAID10 = {
    *("sync_speed_min", "sync_speed_max", "read_ahead_kb", "scheduler"),
    *("nr_requests", "max_sectors_kb", "wbt_lat_usec", "rq_affinity"),
    *("read_expire", "fifo_batch", "low_latency", "safe_mode_delay"),
}


@dataclass(frozen=True)
class Phase:
    name: str
    buffered_read: bool = False
    reads: bool = False
    writes: bool = False
    checks: bool = False


@pytest.fixture
def array(tmp_path: Path) -> Array:
    machine = fake_sysfs.raid6(tmp_path)
    for host, letter in enumerate("abcde"):
        machine.sata(f"sd{letter}", host)
    return find_array("/dev/md0", tmp_path)


def apply(array: Array, setting: dict[str, int | str]) -> None:
    for write in knobs.plan(array, setting, knobs.ALL):
        fake_sysfs.write(write.path, write.text)


def originals(array: Array) -> dict[Path, str]:
    paths = [path for knob in knobs.for_array(array, knobs.ALL) for path in knob.paths(array)]
    return {path: sysfs.original(path) for path in paths}


def restore(saved: dict[Path, str]) -> list[Path]:
    written = []
    for write in knobs.restoring(saved):
        now = sysfs.original(write.path)
        if now != write.text and "" not in (now, write.text):
            fake_sysfs.write(write.path, write.text)
            written.append(write.path)
    return written


def present(array: Array, name: str) -> Knob:
    knob = knobs.by_name(name)
    assert knob.applies(array)
    return knob


def test_an_array_has_only_its_own_knobs(tmp_path: Path) -> None:
    fake_sysfs.raid6(tmp_path, "raid10", 4)
    found = {knob.name for knob in knobs.for_array(find_array("md0", tmp_path), knobs.ALL)}
    assert found == ON_RAID10


def test_disks_and_processors_that_lack_a_setting_are_not_offered_it(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    assert not knobs.by_name("queue_depth").applies(find_array("md0", tmp_path))
    assert knobs.by_name("rq_affinity").applies(find_array("md0", tmp_path))
    (tmp_path / "sys/devices/system/cpu/cpu1").rmdir()
    assert not knobs.by_name("rq_affinity").applies(find_array("md0", tmp_path))
    assert knobs.by_name("low_latency").applies(find_array("md0", tmp_path))
    machine.put("sys/block/sdc/queue/scheduler", "[mq-deadline] none")
    found = find_array("md0", tmp_path)
    assert not knobs.by_name("low_latency").applies(found)
    assert knobs.by_name("read_expire").applies(found)


def test_raid6_has_every_knob_but_those_of_newer_kernels(array: Array) -> None:
    assert [knob.name for knob in knobs.for_array(array, knobs.ALL)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_choices_are_legal_and_within_memory(array: Array, name: str) -> None:
    knob = present(array, name)
    choices = knob.choices(array, MEMORY)
    assert len(choices) > 1
    assert len(set(choices)) == len(choices)
    for value in choices:
        assert knob.valid(array, value) is None
        assert knob.impossible(value) is None
        assert knob.ram_bytes(array, value) <= MEMORY
    if knob.ordered:
        assert all(type(value) is int for value in choices)
        assert list(choices) == sorted(choices)


@pytest.mark.parametrize("name", NAMES)
def test_ram_grows_with_the_value(array: Array, name: str) -> None:
    knob = present(array, name)
    if knob.ordered:
        costs = [knob.ram_bytes(array, value) for value in knob.choices(array, MEMORY)]
        assert costs == sorted(costs)


@pytest.mark.parametrize("name", NAMES)
def test_every_choice_reads_back_and_the_originals_return(array: Array, name: str) -> None:
    knob = present(array, name)
    beside: dict[str, int | str] = {}
    if name == "sync_speed_min":
        beside = {"sync_speed_max": 10**7}
        apply(array, beside)
    if name == "low_latency":
        beside = {"scheduler": "bfq"}
        apply(array, beside)
    saved = originals(array)
    for value in knob.choices(array, MEMORY):
        before = {path: sysfs.original(path) for path in saved}
        apply(array, {name: value, **beside})
        assert knob.read(array) == value
        # What appears with a scheduler goes with it again.
        changed = {path for path, text in before.items() if text not in ("", sysfs.original(path))}
        assert changed <= set(knob.paths(array)), "a file changed that is not saved"
        restore(saved)
        assert {path: sysfs.original(path) for path in saved} == saved


@pytest.mark.parametrize("name", ["max_sectors_kb", "array_max_sectors_kb"])
def test_a_read_ahead_that_was_lowered_stays_so(array: Array, name: str) -> None:
    """The kernel raises it with the size of requests."""
    queues = [array.queue, *(array.root / "sys/block" / disk / "queue" for disk in array.disks)]
    for queue in queues:
        fake_sysfs.write(queue / "read_ahead_kb", "16")
    saved = originals(array)
    apply(array, {name: 384})
    assert {sysfs.value(queue / "read_ahead_kb") for queue in queues} == {"16"}
    restore(saved)
    assert {path: sysfs.original(path) for path in saved} == saved
    apply(array, {name: 384, "read_ahead_kb": 64})
    assert sysfs.value(array.queue / "read_ahead_kb") == "64"


@pytest.mark.parametrize("name", NAMES)
def test_values_out_of_range_are_refused_with_a_sentence(array: Array, name: str) -> None:
    knob = present(array, name)
    for value in (-1, 2**40, "no-such-value", "1,2"):
        reason = knob.valid(array, value)
        assert reason is not None
        assert reason.endswith(".")
        with pytest.raises(InfeasibleError):
            knobs.plan(array, {name: value}, knobs.ALL)


@pytest.mark.parametrize("name", NAMES)
def test_a_value_that_is_there_already_is_not_written(array: Array, name: str) -> None:
    knob = present(array, name)
    assert knobs.plan(array, {name: knob.read(array)}, knobs.ALL) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_knob_moves_some_phase_and_says_its_hazards(array: Array, name: str) -> None:
    knob = present(array, name)
    phases = [
        Phase("read", buffered_read=True, reads=True),
        Phase("write", writes=True),
        Phase("resync", reads=True, checks=True),
    ]
    moved = [p.name for p in phases for q in ("throughput", "p99") if knob.moves(p, q)]
    assert moved
    assert knob.hazards


@pytest.mark.parametrize("disks", [3, 5, 8])
def test_the_stripe_cache_costs_what_the_formula_says(tmp_path: Path, disks: int) -> None:
    machine = fake_sysfs.raid6(tmp_path, disks=disks)
    found = find_array("md0", tmp_path)
    knob = knobs.by_name("stripe_cache_size")
    assert knob.ram_bytes(found, 1000) == 1000 * (disks * 4096 + 1976)
    machine.put("proc/slabinfo", "slabinfo - version: 2.1")
    assert knob.ram_bytes(found, 1000) == 1000 * (disks * 4096 + 224 + 368 * disks)


def test_the_stripe_cache_grows_by_doubling_and_shrinks_at_once(array: Array) -> None:
    texts = [w.text for w in knobs.plan(array, {"stripe_cache_size": 3000}, knobs.ALL)]
    assert texts == ["512", "1024", "2048", "3000"]
    texts = [w.text for w in knobs.plan(array, {"stripe_cache_size": 17}, knobs.ALL)]
    assert texts == ["17"]


SPEEDS = ["system", "500", "1000", "3000", "200000", "900000"]
PAIRS = [
    (low, high)
    for low, high in itertools.product(SPEEDS, SPEEDS)
    if int(low.replace("system", "1000")) <= int(high.replace("system", "200000"))
]


@pytest.mark.parametrize(("start", "end"), list(itertools.product(PAIRS, PAIRS)))
def test_min_never_passes_max_between_two_stores(
    array: Array, start: tuple[str, str], end: tuple[str, str]
) -> None:
    names = ("sync_speed_min", "sync_speed_max")
    paths = [array.md / name for name in names]

    def begin() -> None:
        for path, text in zip(paths, start, strict=True):
            fake_sysfs.write(path, text)

    def holds() -> bool:
        low, high = (int(sysfs.value(path)) for path in paths)
        return low <= high

    begin()
    for write in knobs.restoring(dict(zip(paths, end, strict=True))):
        fake_sysfs.write(write.path, write.text)
        assert holds()
    assert tuple(sysfs.original(path) for path in paths) == end
    if "system" not in end:
        begin()
        setting = {name: int(text) for name, text in zip(names, end, strict=True)}
        for write in knobs.plan(array, setting, knobs.ALL):
            fake_sysfs.write(write.path, write.text)
            assert holds()
        assert dict(knobs.read_setting(array, map(knobs.by_name, names))) == setting


def test_min_above_max_is_refused(array: Array) -> None:
    assert knobs.consistent(array, {"sync_speed_min": 2000, "sync_speed_max": 1000})
    assert knobs.consistent(array, {"sync_speed_min": 300_000}), "max is 200000 on the array"
    with pytest.raises(InfeasibleError, match="above sync_speed_max"):
        knobs.plan(array, {"sync_speed_min": 300_000}, knobs.ALL)


def test_the_systems_speed_is_restored_as_such(array: Array) -> None:
    saved = originals(array)
    apply(array, {"sync_speed_max": 5000})
    restore(saved)
    assert sysfs.read(array.md / "sync_speed_max") == "200000 (system)"


def test_a_scheduler_switch_keeps_the_queue_length_found_at_the_start(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    length = machine.put("sys/block/sdb/queue/nr_requests", "500")
    found = find_array("md0", tmp_path)
    saved = originals(found)
    apply(found, {"scheduler": "none"})
    assert sysfs.read(length) == str(fake_sysfs.DEPTH)
    apply(found, {"scheduler": "bfq"})
    assert sysfs.read(length) == "500"
    apply(found, {"scheduler": "none"})
    restore(saved)
    assert sysfs.read(length) == "500"
    assert sysfs.read(tmp_path / "sys/block/sda/queue/nr_requests") == "128"


def test_a_switch_and_back_keeps_what_the_scheduler_was_set_to(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    own = "sys/block/sdb/queue/iosched"
    starved = machine.put(f"{own}/writes_starved", "7")
    machine.put(f"{own}/read_expire", "250")
    depth = machine.put(f"{own}/async_depth", "11")
    found = find_array("md0", tmp_path)
    assert not knobs.by_name("read_expire").applies(found), "members differ"
    saved = originals(found)
    apply(found, {"scheduler": "bfq"})
    assert not starved.exists()
    apply(found, {"scheduler": "mq-deadline"})
    assert [sysfs.read(file) for file in (starved, depth)] == ["7", "11"], "as the baseline was"
    apply(found, {"nr_requests": 200})
    assert sysfs.read(depth) == "11"
    apply(found, {"nr_requests": 100, "scheduler": "kyber"})
    apply(found, {"nr_requests": 128, "scheduler": "mq-deadline"})
    assert [sysfs.read(file) for file in (starved, depth)] == ["7", "11"]
    apply(found, {"scheduler": "bfq"})
    restore(saved)
    assert {path: sysfs.original(path) for path in saved} == saved
    assert sysfs.read(tmp_path / own / "read_expire") == "250"


@pytest.mark.parametrize("first", ["none", "bfq"])
def test_a_depth_of_the_queue_is_set_under_a_scheduler_alone(tmp_path: Path, first: str) -> None:
    """Since Linux 7 the queue has it, and refuses to store it without one."""
    machine = fake_sysfs.raid6(tmp_path)
    depth = machine.put("sys/block/sdb/queue/async_depth", "11")
    found = find_array("md0", tmp_path)
    apply(found, {"scheduler": first, "nr_requests": 32})
    # As the kernel does with a scheduler.
    sysfs.write(depth, "32") if first != "none" else depth.write_text("32\n")
    apply(found, {"scheduler": first, "nr_requests": 48})
    apply(found, {"scheduler": "none"})
    apply(found, {"scheduler": "mq-deadline", "nr_requests": 128})
    assert sysfs.read(depth) == "11"


@pytest.mark.parametrize("name", ["read_expire", "fifo_batch", "low_latency"])
def test_a_schedulers_own_setting_is_its_default_under_another(array: Array, name: str) -> None:
    knob = present(array, name)
    assert isinstance(knob, iosched.SchedulersOwn)
    other = next(value for value in knob.choices(array, 0) if value != knob.kernel_default)
    apply(array, {"scheduler": knob.scheduler, name: other})
    assert knobs.consistent(array, {name: other}) is None
    for scheduler in ("none", "kyber"):
        reason = knobs.consistent(array, {"scheduler": scheduler, name: other})
        assert reason == (
            f"{name} {other} is for {knob.scheduler}, and the disks of /dev/md0 have {scheduler}."
        )
        apply(array, {"scheduler": scheduler, name: knob.kernel_default})
        assert knobs.read_setting(array, [knob]) == {name: knob.kernel_default}
        assert knobs.consistent(array, {name: other})
        apply(array, {"scheduler": knob.scheduler, name: other})
        assert knob.read(array) == other, "written after the switch"
    mixed = ",".join([knob.scheduler] * 4 + ["none"])
    assert knobs.consistent(array, {"scheduler": mixed, name: other})


def test_a_settings_own_queue_length_is_written_after_the_switch(array: Array) -> None:
    apply(array, {"nr_requests": 200})
    apply(array, {"nr_requests": 200, "scheduler": "bfq"})
    assert knobs.by_name("nr_requests").read(array) == 200
    assert knobs.consistent(array, {"nr_requests": 200, "scheduler": "none"})


def test_members_that_differ_read_as_a_list_and_are_written_back(array: Array) -> None:
    knob = knobs.by_name("scheduler")
    mixed = "bfq,none,mq-deadline,mq-deadline,kyber"
    apply(array, {"scheduler": mixed})
    assert knob.read(array) == mixed
    apply(array, {"scheduler": "none"})
    apply(array, {"scheduler": mixed})
    assert knob.read(array) == mixed


def test_a_ladder_knob_whose_members_differ_is_not_in_the_space(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("sys/block/sdb/queue/nr_requests", "500")
    assert not knobs.by_name("nr_requests").applies(find_array("md0", tmp_path))


def test_what_suspends_is_not_touched_while_a_sync_runs(array: Array) -> None:
    name = "group_thread_cnt"
    assert knobs.plan(array, {name: 1}, knobs.ALL)
    (array.md / "sync_action").write_text("resync\n")
    with pytest.raises(InfeasibleError, match="while a sync runs"):
        knobs.plan(array, {name: 1}, knobs.ALL)
    assert knobs.plan(array, {name: 0}, knobs.ALL) == [], "nothing to write"


def test_the_array_takes_whole_stripes_at_once(tmp_path: Path) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    knob, found = knobs.by_name("array_max_sectors_kb"), find_array("md0", tmp_path)
    # A stripe is 192 KiB there; 1024 is the most, and no multiple.
    assert knob.choices(found, 0) == (192, 384, 768, 960, 1024)
    machine.put("sys/block/md0/queue/optimal_io_size", "1310720")
    assert not knob.applies(find_array("md0", tmp_path))


def test_an_unknown_knob_is_refused(array: Array) -> None:
    with pytest.raises(InfeasibleError, match="no setting block_size"):
        knobs.plan(array, {"block_size": 1}, knobs.ALL)
