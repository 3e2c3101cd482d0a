"""Members that md is to replace by a spare."""

from pathlib import Path

import fake_sysfs
import pytest

from autotune.errors import StoppedError
from autotune.safety.watch import Watch
from autotune.system.array import find_array
from autotune.system.replacement import replacement_waits

WANTED = "in_sync,want_replacement"


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    return fake_sysfs.raid6(tmp_path)


def state(machine: fake_sysfs.FakeMachine, member: str, text: str) -> None:
    machine.put(f"sys/block/md0/md/dev-{member}/state", text)


@pytest.mark.parametrize(
    ("states", "waits"),
    [
        ({}, False),
        ({"sdb": WANTED}, False),
        ({"sdf": "spare"}, False),
        ({"sdb": WANTED, "sdf": "spare"}, True),
        ({"sdb": f"{WANTED},write_error", "sdf": "spare"}, True),
        ({"sdb": WANTED, "sdf": "faulty,spare"}, False),
        # It was replaced.
        ({"sdb": "faulty,want_replacement", "sdf": "in_sync", "sdg": "spare"}, False),
    ],
)
def test_a_member_waits_for_its_replacement(
    machine: fake_sysfs.FakeMachine, states: dict[str, str], waits: bool
) -> None:
    array = find_array("md0", machine.root)
    for member, text in states.items():
        state(machine, member, text)
    text = "the replacement of the member sdb of /dev/md0 waits"
    assert replacement_waits(array) == (text if waits else None)


def test_what_md_did_not_begin_before_it_does_not_begin_now(
    machine: fake_sysfs.FakeMachine,
) -> None:
    state(machine, "sdb", WANTED)
    state(machine, "sdf", "spare")
    array = find_array("md0", machine.root)
    assert replacement_waits(array) is None
    state(machine, "sdg", "spare")
    assert replacement_waits(array) is not None


def test_it_ends_a_run_but_not_that_of_a_real_sync(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    watch = Watch(array, ())
    watch.look()
    state(machine, "sdb", WANTED)
    watch.look()
    state(machine, "sdf", "spare")
    with pytest.raises(StoppedError, match=r"the replacement of the member sdb .* goes first"):
        watch.look()
    machine.put("sys/block/md0/md/sync_action", "recover")
    Watch(array, (), "recover").look()
