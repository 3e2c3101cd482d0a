"""Every knob on a real array, on raid6-hdd; `test_run.py` runs this there."""

import contextlib
import os
import random
import signal
import statistics
import time
from collections.abc import Iterator
from mmap import mmap
from pathlib import Path

import pytest
from guest import Follower, knob_files, read, wait_until

from autotune.errors import StoppedError
from autotune.knobs import ALL, by_name, iosched
from autotune.measure.workload import load_workload
from autotune.measure.write_budget import Written
from autotune.problem.setting import Setting, Value
from autotune.safety.apply import apply, follow_again
from autotune.system import sysfs
from autotune.system.array import find_array
from autotune.tuning.preparation import Options, Preparation
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session

SETTINGS = 20
HERE = {
    *("group_thread_cnt", "nr_requests", "array_max_sectors_kb", "safe_mode_delay"),
    *("read_expire", "fifo_batch", "low_latency"),
}
BY_HAND = {"read_expire": "240", "writes_starved": "5"}
"""What a person has set of mq-deadline."""
ELSEWHERE: dict[str, Value] = {
    **{"scheduler": "bfq", "low_latency": 0, "read_expire": 500, "fifo_batch": 16},
    **{"safe_mode_delay": 20_000, "array_max_sectors_kb": 192, "nr_requests": 64},
}
"""Under another scheduler, where those of mq-deadline can be nothing but what a switch sets."""


@pytest.fixture(autouse=True)
def by_hand() -> Iterator[dict[str, str]]:
    """How everything reads, once a person has set the scheduler of each disk."""
    queues = [Path("/sys/block", disk, "queue/iosched") for disk in find_array("md0").disks]
    before = {queue / file: read(queue / file) for queue in queues for file in BY_HAND}
    for path in before:
        sysfs.write(path, BY_HAND[path.name])
    yield knob_files()
    for path, text in before.items():
        sysfs.write(path, text)


def prepared(state_dir: Path) -> Preparation:
    return prepare(
        Options(
            "/dev/md0",
            load_workload("quick"),
            destructive="/dev/md0",
            knobs=ALL,
            ram_budget=64 << 20,
        ),
        state_dir,
    )


def test_every_value_takes_effect_in_any_company_and_all_go_back(
    tmp_path: Path, by_hand: dict[str, str]
) -> None:
    preparation, rng = prepared(tmp_path), random.Random(7)
    assert {knob.name for knob in preparation.knobs} >= HERE
    assert not {knob.name for knob in preparation.knobs} & {"queue_depth", "rq_affinity"}
    took: list[Setting] = []
    with session(preparation, tmp_path, Follower(), Written()) as (bench, watch):
        watch.expect(None)
        while len(took) < SETTINGS:
            setting = {name: rng.choice(values) for name, values in preparation.choices.items()}
            for own in iosched.ALL:
                if setting["scheduler"] != own.scheduler:
                    setting[own.name] = own.kernel_default
            if len(took) == SETTINGS // 2:
                setting = {**preparation.baseline, **ELSEWHERE}
            if not preparation.allowed(setting):
                continue
            took.append(apply(preparation.array, preparation.knobs, setting, bench.journal))
            assert took[-1] == setting
        assert len({setting["scheduler"] for setting in took}) > 2
        assert knob_files() != by_hand
        apply(preparation.array, preparation.knobs, preparation.baseline, bench.journal)
        met = {path: text.replace("local", "system") for path, text in knob_files().items()}
        assert met == by_hand, "what a trial of the original settings meets"
        follow_again(preparation.array, preparation.knobs, bench.journal)
        assert knob_files() == by_hand, "what a winner that leaves them alone stays with"
    assert knob_files() == by_hand


@pytest.mark.parametrize(
    ("file", "text"), [("iosched/read_expire", "320"), ("wbt_lat_usec", "12345")]
)
def test_what_a_person_sets_of_a_scheduler_outlives_the_next_switch(
    tmp_path: Path, by_hand: dict[str, str], file: str, text: str
) -> None:
    """Since none comes: it would reset that, and nobody could tell what it was."""
    theirs = Path("/sys/block", find_array("md0").disks[0], "queue", file)
    with pytest.raises(StoppedError, match=f"somebody else set {theirs.name} to {text}"):
        switch_after(tmp_path, theirs, text)
    try:
        assert knob_files() == {**by_hand, str(theirs): text}
    finally:
        sysfs.write(theirs, by_hand[str(theirs)])


def switch_after(folder: Path, theirs: Path, text: str) -> None:
    preparation = prepared(folder)
    with session(preparation, folder, Follower(), Written()) as (bench, watch):
        watch.expect(None)
        sysfs.write(theirs, text)
        setting = {**preparation.baseline, **ELSEWHERE}
        apply(preparation.array, preparation.knobs, setting, bench.journal)


def test_a_kill_leaves_nothing_behind(tmp_path: Path, by_hand: dict[str, str]) -> None:
    changed = tmp_path / "changed"
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException):
            change_and_die(tmp_path, changed, by_hand)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    wanted = {"scheduler", "low_latency", "safe_mode_delay", "max_sectors_kb"}
    assert set(read(changed).split()) >= wanted
    wait_until(lambda: knob_files() == by_hand, 60, "the guardian")


def change_and_die(folder: Path, changed: Path, before: dict[str, str]) -> None:
    preparation = prepared(folder)
    with session(preparation, folder, Follower(), Written()) as (bench, watch):
        watch.expect(None)
        setting = {**preparation.baseline, **ELSEWHERE}
        apply(preparation.array, preparation.knobs, setting, bench.journal)
        now = knob_files()
        names = {Path(path).name for path in now if now[path] != before.get(path)}
        changed.write_text(" ".join(names))
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_an_array_that_is_not_marked_clean_takes_writes_sooner() -> None:
    """The next write after a pause then waits for no write to the superblocks."""
    knob, array = by_name("safe_mode_delay"), find_array("md0")
    found = knob.read(array)
    times_ms: dict[Value, list[float]] = {found: [], 20_000: []}
    for value in (found, 20_000) * 2:
        (write,) = knob.writes(array, value)
        sysfs.write(write.path, write.text)
        times_ms[value] += seldom_written(array.device, is_marked=value == found)
    (write,) = knob.writes(array, found)
    sysfs.write(write.path, write.text)
    for value, each in times_ms.items():
        print(f"{value} ms: p50 {statistics.median(each):.1f} ms, max {max(each):.1f} ms")
    assert statistics.median(times_ms[20_000]) < statistics.median(times_ms[found])


def seldom_written(device: str, is_marked: bool, count: int = 10) -> list[float]:
    """How long each of some writes took, in ms, each after a pause in which the array is marked
    clean or not."""
    page, times_ms = mmap(-1, 4096), []
    state = Path("/sys/block", Path(device).name, "md/array_state")
    file = os.open(device, os.O_WRONLY | os.O_DIRECT)
    try:
        for number in range(count + 1):
            if number and is_marked:
                wait_until(lambda: read(state) == "clean", 30, "the mark")
            elif number:
                time.sleep(0.7)
                assert read(state) == "active"
            began = time.monotonic()
            os.pwrite(file, page, number << 20)
            times_ms.append((time.monotonic() - began) * 1000)
    finally:
        os.close(file)
    return times_ms[1:]
