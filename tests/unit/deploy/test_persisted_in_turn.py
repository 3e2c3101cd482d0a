"""Profiles applied and persisted in turn on two arrays that share disks, with reboots, disks that
leave, and parts put back between: in the end all disks have what they had before everything."""

import random
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import udev_sets
from some_profile import profile

from autotune.deploy import persist
from autotune.deploy.apply import known_here
from autotune.deploy.left_alone import without_left_alone
from autotune.deploy.persisted import persisted_uuids
from autotune.deploy.undo import record_persisted
from autotune.knobs import ALL, by_name, for_array, read_setting
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.safety.applied import keep_applied
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.record import BOOT_ID
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array, list_arrays
from autotune.system.disk_originals import NOTES

SCHEDULERS = ("mq-deadline", "none", "bfq", "kyber")
LENGTHS = (32, 48)
CACHES = (512, 1024)
OWNERS = {"async_depth": "9", "writes_starved": "5"}
"""Of mq-deadline, and no setting that a profile has."""


class Disks:
    """md0 on all disks, md1 on some of them or all, and what the disks had at first."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self.rng, self.state = root, rng, root / "state"
        self.said: list[str] = []
        fake_sysfs.raid6(root)
        block, self._boot = root / "sys/block", root / BOOT_ID.relative_to("/")
        self._boot.parent.mkdir(parents=True, exist_ok=True)
        self._boot.write_text("0\n")
        shutil.copytree(block / "md0", block / "md1", symlinks=True)
        # udev reads the rules in the order of their names, so of the UUIDs.
        (block / "md1/md/uuid").write_text(rng.choice("1f") * 32 + "\n")
        disks = self.array("md0").disks
        for disk in disks:
            (block / disk / "wwid").write_text(f"{disk}-wwid\n")
        self._keep("md1", rng.choice([disks, disks[:2], disks[1:3]]))
        alike = rng.random() < 0.5
        self.first = {disk: "none" if not alike and rng.random() < 0.5 else "mq-deadline"
                      for disk in disks}  # fmt: skip
        self._owners = OWNERS if rng.random() < 0.5 else {}
        self._start()
        self.begin = self.now()

    def array(self, name: str) -> Array:
        return next(array for array in list_arrays(self.root) if array.name == name)

    def now(self) -> dict[str, tuple[str, ...]]:
        files = {disk: self._file(disk) for disk in self.first}
        found: dict[str, tuple[str, ...]] = {
            disk: (
                sysfs.value(file),
                sysfs.value(file.with_name("nr_requests")),
                *(sysfs.read_or(file.with_name("iosched") / name, "") for name in OWNERS),
            )
            for disk, file in files.items()
        }
        return {**found, "md0": (self._cache("md0"),), "md1": (self._cache("md1"),)}

    def _cache(self, name: str) -> str:
        return sysfs.value(self.array(name).md / "stripe_cache_size")

    def _file(self, disk: str) -> Path:
        return self.root / "sys/block" / disk / "queue/scheduler"

    def _keep(self, name: str, disks: tuple[str, ...]) -> None:
        for member in self.array(name).members:
            if member.disk not in disks:
                shutil.rmtree(self.array(name).md / f"dev-{member.name}")

    def _values(self) -> Setting:
        values: dict[str, str | int] = {
            "scheduler": self.rng.choice(SCHEDULERS),
            "nr_requests": self.rng.choice(LENGTHS),
            "stripe_cache_size": self.rng.choice(CACHES),
        }
        # Most often the scheduler alone.
        names = [["scheduler"], ["scheduler"], list(values)[:2], ["nr_requests"], list(values)]
        return {name: values[name] for name in self.rng.choice(names)}

    def apply(self, array: Array) -> Profile | None:
        wanted, _ = without_left_alone(profile(dict(self._values())), array, self.state)
        if not wanted.knobs:
            return None
        values, knobs = wanted.knobs, tuple(map(by_name, wanted.knobs))
        array = array.now()
        if not all(knob.applies(array) for knob in knobs):
            return None
        record_persisted(array, self.state)
        paths, path = (
            journaled_paths(array, for_array(array, ALL)),
            journal_path(self.state, array.uuid),
        )
        journal = new_journal(path, array.uuid, array.device, paths, array.root)
        found = read_setting(array, knobs)
        apply(array, knobs, dict(values), journal)
        made = known_here(wanted, array, found, self.state)
        keep_applied(made, array, journal, self.state)
        journal.release()
        return made

    def persist(self, array: Array) -> None:
        if made := self.apply(array):
            persist.persist(made, array, self.state, lambda _text: None)
            udev_sets(array.now())

    def unpersist(self, array: Array) -> None:
        self.said += record_persisted(array, self.state)
        persist.unpersist(array.uuid, self.root)

    def restore(self, array: Array) -> None:
        path = applied_path(self.state, array.uuid)
        if path.exists():
            journal = Journal.claimed(path)
            outcome = restore(journal, self.root)
            journal.release()
            assert outcome.failed == []
            self.said += outcome.foreign

    def reboot(self, _array: Array) -> None:
        self._boot.write_text(f"{int(self._boot.read_text()) + 1}\n")
        self._start()

    def _start(self) -> None:
        for disk, text in self.first.items():
            # Twice, so that it resets its queue as a boot does.
            for each in ("kyber" if text == "none" else "none", text):
                fake_sysfs.write(self._file(disk), each)
            for name, own in self._owners.items() if text == "mq-deadline" else ():
                fake_sysfs.write(self._file(disk).with_name("iosched") / name, own)
        of_uuid = {array.uuid: array for array in list_arrays(self.root)}
        for array in of_uuid.values():
            fake_sysfs.write(array.md / "stripe_cache_size", "256")
        shutil.rmtree(self.root / NOTES.relative_to("/"), ignore_errors=True)
        for uuid in persisted_uuids(self.root):
            udev_sets(of_uuid[uuid])

    def lose_a_disk(self, array: Array) -> None:
        if len(array.disks) > 2:
            self._keep(array.name, array.disks[:-1])

    def restore_all(self) -> None:
        """As the command does it."""
        arrays = list_arrays(self.root)
        for array in arrays:
            self.said += record_persisted(array, self.state)
        for array in arrays:
            self.restore(array)


def go_through(root: Path, seed: int) -> None:
    rng = random.Random(seed)
    disks = Disks(root, rng)
    events = [disks.apply, disks.persist, disks.persist, disks.reboot, disks.restore]
    events += [disks.unpersist]
    done = []
    for event in rng.choices([*events, disks.lose_a_disk], k=rng.randint(2, 7)):
        array = disks.array(rng.choice(["md0", "md1"]))
        event(array)
        done.append((event.__name__, array.name, disks.now()))
    disks.restore_all()
    # A disk that left before a profile was persisted anew is nobody's.
    arrays = list_arrays(root)
    there = {name for array in arrays for name in (array.name, *array.disks)}
    now = {disk: state for disk, state in disks.now().items() if disk in there}
    assert now == {disk: disks.begin[disk] for disk in there}, done
    # Of a disk that has joined without udev and reads as the profile has it, nothing is noted.
    assert [text for text in disks.said if "is not noted" not in text] == [], done


@pytest.mark.parametrize("seed", range(20))
def test_some_sequences(tmp_path: Path, quick: None, seed: int) -> None:
    go_through(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 1500))
def test_many_sequences(tmp_path: Path, quick: None, seed: int) -> None:
    go_through(tmp_path, seed)
