"""Disks that go from one array to another, under profiles that are applied, persisted and undone in
turn: in the end each disk has what it had, or what its owner has set on it while it was free."""

import random
import shutil
from pathlib import Path

import fake_sysfs
import pytest
from profiles_in_force import apply_values, start, udev_sets
from some_profile import profile

from autotune.deploy import persist
from autotune.deploy.left_alone import without_left_alone
from autotune.deploy.persisted import persisted_uuids
from autotune.deploy.undo import record_persisted, stopped
from autotune.knobs import by_name
from autotune.problem.profile import Profile
from autotune.problem.setting import Setting
from autotune.safety.applied import known_by_record, stopped_array
from autotune.safety.journal import Journal
from autotune.safety.paths import applied_path
from autotune.safety.restore import restore
from autotune.system import sysfs
from autotune.system.array import Array, find_array
from autotune.system.disk_originals import noted_for

SCHEDULERS = ("mq-deadline", "none", "bfq", "kyber")
DISKS = tuple(f"sd{letter}" for letter in "abcdefg")
FREE = ""


class Disks:
    """md0 and md1 of three disks each, and one that is in no array."""

    def __init__(self, root: Path, rng: random.Random) -> None:
        self.root, self.rng, self.state = root, rng, root / "state"
        machine = fake_sysfs.FakeMachine(root)
        for disk in DISKS:
            machine.disk(disk)
        machine.array("md0", "raid6", DISKS[:3])
        machine.array("md1", "raid6", DISKS[3:6])
        machine.put("sys/block/md1/md/uuid", rng.choice("1f") * 32)
        self.place = dict(zip(DISKS, ("md0",) * 3 + ("md1",) * 3 + (FREE,), strict=True))
        self.marks: dict[str, str] = {}
        """The rule that udev remembers to have set for a disk."""
        self.wanted: dict[str, dict[str, str]] = {}
        self.done: list[str] = []
        self._say_who_they_are(rng.random() < 0.7)
        self.reboot()

    def _say_who_they_are(self, they_do: bool) -> None:
        for disk in DISKS if they_do else ():
            (self.root / "sys/block" / disk / "wwid").write_text(f"{disk}-wwid\n")

    def array(self, name: str) -> Array:
        return find_array(name, self.root)

    def _some(self) -> Array:
        return self.array(self.rng.choice(["md0", "md1"]))

    def _file(self, disk: str, name: str) -> Path:
        return self.root / "sys/block" / disk / "queue" / name

    def reads(self, disk: str) -> dict[str, str]:
        return {n: sysfs.value(self._file(disk, n)) for n in ("scheduler", "nr_requests")}

    def reboot(self) -> None:
        start(self.root, str(self.rng.random()))
        shutil.rmtree(self.state, ignore_errors=True)
        self.marks.clear()
        odd = self.rng.choice([0.0, 0.2, 0.5])
        for disk in DISKS:
            first = self.rng.choice(["mq-deadline", "mq-deadline", "none"])
            for each in ("kyber" if first == "none" else "none", first):
                fake_sysfs.write(self._file(disk, "scheduler"), each)
            if self.rng.random() < odd:
                fake_sysfs.write(self._file(disk, "nr_requests"), str(self.rng.randint(25, 60)))
        self.wanted = {disk: self.reads(disk) for disk in DISKS}
        for disk in DISKS:
            self._event(disk)

    def _event(self, disk: str, lines: int | None = None) -> None:
        """What udev does where it sees a disk; `lines`: of how many before it is killed."""
        name = self.place[disk]
        if name == FREE or (array := self.array(name)).uuid not in persisted_uuids(self.root):
            self.marks.pop(disk, None)
            return
        rule = self._rule(array.uuid)
        if self.marks.get(disk) == rule:
            return
        udev_sets(array, disk, lines=lines)
        if lines is None:
            self.marks[disk] = rule

    def _rule(self, uuid: str) -> str:
        return persist.rule_path(uuid, self.root).read_text()

    def _values(self) -> Setting:
        values: dict[str, str | int] = {
            "scheduler": self.rng.choice(SCHEDULERS),
            "nr_requests": self.rng.choice([24, 48]),
        }
        names = self.rng.choice([["scheduler"], ["nr_requests"], list(values)])
        return {name: values[name] for name in names}

    def apply(self, array: Array | None = None) -> tuple[Array, Profile] | None:
        array = array or self._some()
        if not array.disks:
            return None
        wanted, _ = without_left_alone(profile(dict(self._values())), array, self.state)
        if not wanted.knobs or not all(by_name(name).applies(array) for name in wanted.knobs):
            return None
        return array, apply_values(array, wanted.knobs, self.state)

    def persist(self) -> None:
        if done := self.apply():
            array, made = done
            persist.persist(made, array, self.state, lambda _text: None)
            for disk in array.disks:
                self._event(disk)

    def unpersist(self) -> None:
        array = self._some()
        record_persisted(array, self.state)
        persist.unpersist(array.uuid, self.root)
        for disk in DISKS:
            # All that have its mark are told.
            self._event(disk)

    def restore(self, array: Array | None = None) -> None:
        array = array or self._some()
        record_persisted(array, self.state)
        self._put_back(array.uuid)

    def _put_back(self, uuid: str) -> None:
        path = applied_path(self.state, uuid)
        if path.exists():
            journal = Journal.claimed(path)
            outcome = restore(journal, self.root)
            journal.release()
            assert outcome.failed == [], self.done

    def move(self) -> None:
        """Take a disk out, or put one in, perhaps erased before; perhaps it comes back at once."""
        # Most often the one that is in no array at first.
        disk = self.rng.choice([*DISKS, *DISKS[6:] * 5])
        old, new = self.place[disk], self.rng.choice(["md0", "md1", FREE])
        if old != FREE:
            shutil.rmtree(self.root / f"sys/block/{old}/md/dev-{disk}")
            self.place[disk] = FREE
        if self.rng.random() < 0.5:
            # It is erased, which udev sees.
            self.marks.pop(disk, None)
        if new != FREE:
            folder = self.root / f"sys/block/{new}/md/dev-{disk}"
            folder.mkdir()
            (folder / "state").write_text("in_sync\n")
            slots = {(p / "slot").read_text() for p in folder.parent.glob("dev-*") if p != folder}
            slot = next(n for n in range(9) if f"{n}\n" not in slots)
            (folder / "slot").write_text(f"{slot}\n")
            self.place[disk] = new
            if self.rng.random() < 0.2:
                self._event(disk, lines=self.rng.randint(0, 8))
            self._event(disk)
        self.done.append(f"  {disk} {old or 'free'} -> {new or 'free'}")

    def hand(self) -> None:
        """The owner sets something on a disk in no array, of which no record knows."""
        records = sorted(applied_path(self.state, "any").parent.glob("*.jsonl"))
        arrays = [array for path in records if (array := stopped_array(path))]
        known = {sysfs.device(f).name for a in arrays for f in known_by_record(a, self.state)}
        free = [disk for disk in DISKS if self.place[disk] == FREE and disk not in known]
        if not free:
            return
        disk, now = self.rng.choice(free), {}
        if self.rng.random() < 0.3:
            now = {"scheduler": self.rng.choice(SCHEDULERS)}
            if now["scheduler"] == self.reads(disk)["scheduler"]:
                return
            fake_sysfs.write(self._file(disk, "scheduler"), now["scheduler"])
            if now["scheduler"] != self.wanted[disk]["scheduler"]:
                now = self.reads(disk)
        else:
            now = {"nr_requests": str(self.rng.randint(4, 22))}
            fake_sysfs.write(self._file(disk, "nr_requests"), now["nr_requests"])
        self.wanted[disk].update(now)
        self.done.append(f"  {disk} by hand {now}")

    def restore_all(self) -> None:
        """As the command does it."""
        arrays = [self.array(name) for name in ("md0", "md1")]
        for array in arrays:
            record_persisted(array if array.disks else stopped(array.uuid, self.root), self.state)
        for array in arrays:
            self._put_back(array.uuid)
            persist.unpersist(array.uuid, self.root)


def go_through(root: Path, seed: int) -> None:
    rng = random.Random(seed)
    disks = Disks(root, rng)
    events = [disks.apply, disks.persist, disks.persist, disks.restore, disks.unpersist, disks.hand]
    for event in rng.choices([*events, disks.reboot, *[disks.move] * 6], k=rng.randint(3, 16)):
        event()
        disks.done.append(f"{event.__name__}: { {disk: disks.reads(disk) for disk in DISKS} }")
    disks.restore_all()
    assert {disk: disks.reads(disk) for disk in DISKS} == disks.wanted, "\n".join(disks.done)
    notes = noted_for(disks.array("md0").uuid, root) | noted_for(disks.array("md1").uuid, root)
    assert [note for note in notes.values() if note.original != note.set_to] == []


@pytest.mark.parametrize("seed", [*range(30), 312, 614])
def test_some_lives(tmp_path: Path, quick: None, seed: int) -> None:
    go_through(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(30, 1000))
def test_many_lives(tmp_path: Path, quick: None, seed: int) -> None:
    go_through(tmp_path, seed)
