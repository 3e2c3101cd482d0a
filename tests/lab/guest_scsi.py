"""Disks with a queue of their own, on raid5-ssd, whose array is left alone: the kernel's simulated
SCSI disks; `test_run.py` runs this there."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from guest import Follower, knob_files, wait_until

from autotune.knobs import by_name
from autotune.lab.guest.system import MODULES, load_modules
from autotune.measure.phase import measure
from autotune.measure.workload import parse_workload
from autotune.measure.write_budget import Written
from autotune.safety.apply import apply
from autotune.tuning.preparation import Options
from autotune.tuning.prepare import prepare
from autotune.tuning.session import session

DEVICE = "/dev/md7"
DEEP = """
name = "deep"
[[phases]]
name = "deep"
weight = 1
load = { rw = "randread", block_kib = 4, depth = 32 }
"""
SLOWLY = "max_queue=64 ndelay=5000000 dev_size_mb=32 per_host_store=1 add_host=3"
"""Each request takes 5 ms, however many there are at once."""


def run(*words: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def array() -> Iterator[str]:
    load_modules(("sd_mod", "scsi_mod"))
    (module,) = (MODULES / os.uname().release).resolve().rglob("scsi_debug.ko*")
    run("insmod", str(module), *SLOWLY.split())
    wait_until(lambda: len(list(Path("/sys/block").glob("sd?"))) == 3, 30, "the disks")
    disks = [f"/dev/{path.name}" for path in sorted(Path("/sys/block").glob("sd?"))]
    create = ("--create", DEVICE, "--run", "--assume-clean", "--level=5", "--chunk=64")
    run("mdadm", *create, "--bitmap=none", "--raid-devices=3", *disks)
    yield DEVICE
    run("mdadm", "--stop", DEVICE)


def test_a_disks_own_queue_is_set_and_goes_back(array: str, tmp_path: Path) -> None:
    knob = by_name("queue_depth")
    options = Options(array, parse_workload(DEEP, "deep"), knobs=(knob,))
    preparation = prepare(options, tmp_path)
    assert preparation.choices[knob.name][0] == 1
    before, found = knob_files("md7"), preparation.baseline[knob.name]
    assert any(path.endswith("device/queue_depth") for path in before)
    iops = {}
    with session(preparation, tmp_path, Follower(), Written()) as (bench, watch):
        watch.expect(None)
        for depth in preparation.choices[knob.name]:
            apply(preparation.array, preparation.knobs, {knob.name: depth}, bench.journal)
            assert knob.read(preparation.array) == depth
        for depth in (1, found):
            apply(preparation.array, preparation.knobs, {knob.name: depth}, bench.journal)
            figures = measure(preparation.phases[0], bench, int(depth)).figures
            iops[depth] = figures["deep.throughput"].value / 4096
    print(*(f"depth {depth}: {rate:.0f} IOPS" for depth, rate in iops.items()), sep=", ")
    # Three disks, one request each at a time.
    assert iops[1] < 3 / 0.005
    assert iops[found] > 1.5 * iops[1]
    assert knob_files("md7") == before
