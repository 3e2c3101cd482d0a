"""Puts profiles in force on a fake machine, as the commands do."""

import contextlib
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import fake_sysfs
from some_profile import profile

from autotune.deploy.apply import known_here
from autotune.deploy.persist import persist
from autotune.deploy.persisted import NOTING, profile_path, rule_path
from autotune.deploy.undo import record_persisted
from autotune.errors import InfeasibleError
from autotune.export import udev
from autotune.knobs import ALL, by_name, for_array, read_setting
from autotune.knobs.originals import with_before
from autotune.knobs.profile_file import save_profile
from autotune.problem.profile import Profile
from autotune.safety.applied import keep_applied
from autotune.safety.apply import apply, journaled_paths
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.outcome import Outcome
from autotune.safety.paths import applied_path, journal_path
from autotune.safety.record import BOOT_ID
from autotune.safety.restore import restore
from autotune.system import noted_records
from autotune.system.array import Array
from autotune.system.disk_originals import NOTES

PLACE = NOTES.relative_to("/")
SCRIPT = Path(udev.__file__).with_name(NOTING.name)
ORIGINAL = "mq-deadline"


def start(root: Path, boot: str = "b") -> None:
    """Another start of the machine, for records."""
    path = root / BOOT_ID.relative_to("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{boot}\n")
    shutil.rmtree(root / PLACE, ignore_errors=True)


def schedulers(array: Array) -> list[Path]:
    return [array.root / "sys/block" / disk / "queue/scheduler" for disk in array.disks]


def set_all(paths: Sequence[Path], text: str) -> None:
    for path in paths:
        fake_sysfs.write(path, text)


def shrink(array: Array, disks: int) -> None:
    """The array has its first disks alone."""
    for member in array.members[disks:]:
        shutil.rmtree(array.md / f"dev-{member.name}")
    (array.md / "raid_disks").write_text(f"{disks}\n")


@contextlib.contextmanager
def left_out(array: Array) -> Iterator[Array]:
    """The array without its last disk, which joins at the end."""
    folder = array.md / f"dev-{array.members[-1].name}"
    moved = array.root / "left-out"
    shutil.move(folder, moved)
    yield array.now()
    shutil.move(moved, folder)


def apply_values(array: Array, values: Mapping[str, str | int], state: Path) -> Profile:
    """As `autotune apply` leaves it; the profile with what was before it."""
    record_persisted(array, state)
    array, knobs = array.now(), tuple(map(by_name, values))
    paths = journaled_paths(array, for_array(array, ALL))
    path, found = journal_path(state, array.uuid), read_setting(array, knobs)
    journal = new_journal(path, array.uuid, array.device, paths, array.root)
    apply(array, knobs, dict(values), journal)
    known = known_here(profile(dict(values)), array, found, state)
    keep_applied(known, array, journal, state)
    journal.release()
    # That is done in the machine's own /run.
    noted_records.forget(path, array.root)
    return known


def persist_values(array: Array, values: Mapping[str, str | int], state: Path) -> None:
    """As `autotune apply --persist` leaves it."""
    persist(apply_values(array, values, state), array, state, lambda _text: None)


def persisted_before(
    array: Array, values: Mapping[str, str | int], before: Mapping[str, str | int]
) -> Path:
    """A profile that lies there for udev, and has not been applied in this boot; its file."""
    path = profile_path(array.uuid, array.root)
    made = with_before(profile(dict(values)), array, before, ())
    save_profile(made, path)
    (array.root / NOTING).write_text(SCRIPT.read_text())
    rule = rule_path(array.uuid, array.root)
    rule.parent.mkdir(parents=True, exist_ok=True)
    rule.write_text(udev.persisted(made, array.uuid))
    return path


def udev_sets(array: Array, *disks: str, lines: int | None = None) -> None:
    """Do on the array and its disks, or on these disks alone, what the rule of its persisted
    profile says. `lines`: of so many of its lines, where udevd is killed then."""
    rule = rule_path(array.uuid, array.root).read_text()
    if not disks and 'LABEL="autotune_array"' in rule:
        _follow(rule, "autotune_array", array.block)
    if 'LABEL="autotune_member"' in rule:
        for disk in disks or array.disks:
            _follow(rule, "autotune_member", array.root / "sys/block" / disk, lines)


def _follow(rule: str, label: str, device: Path, lines: int | None = None) -> None:
    root = device.parents[2]
    here = {f"/{place}": str(root / place) for place in (NOTING, PLACE)}
    section = rule.partition(f'LABEL="{label}"\n')[2].partition("\nLABEL")[0].splitlines()
    for line in section[:lines]:
        tests = re.findall('(?:TEST==|ENV{DEVTYPE}==)"([^"]+)"', line)
        if noting := re.match(r'PROGRAM!="(/bin/sh .*)", GOTO="autotune_end"', line):
            words = noting[1].replace("/sys$devpath", str(device)).split()
            subprocess.run([here.get(word, word) for word in words], check=True)
        elif all(test == "disk" or (device / test).exists() for test in tests):
            shown = re.search('PROGRAM=="/bin/cat /sys[$]devpath/([^"]+)"', line)
            result = (device / shown[1]).read_text().strip() if shown else ""
            for file, text in re.findall(r'ATTR\{([a-z/_]+)\}="([^"]*)"', line):
                # udev goes on where the kernel does not take a value.
                with contextlib.suppress(InfeasibleError):
                    fake_sysfs.write(device / file, text.replace("$result", result))


def undo(array: Array, state: Path) -> Outcome:
    """As `autotune restore` does it."""
    path = applied_path(state, array.uuid)
    journal = Journal.claimed(path)
    outcome = restore(journal, array.root)
    journal.release()
    assert outcome.complete
    assert not path.exists()
    return outcome
