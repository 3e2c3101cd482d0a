"""Whether an array is as its profile says, and who changed it if not."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_sysfs
import pytest
from rich.console import Console
from some_profile import document
from typer.testing import CliRunner

from autotune.cli.main import app
from autotune.deploy.in_force import active, refuse_damaged
from autotune.deploy.persisted import DIGEST, NOTING, profile_path, rule_path, rule_text
from autotune.deploy.status import NOT_PROVEN, ArrayStatus, status
from autotune.errors import RefusalError, UsageError
from autotune.export import udev
from autotune.knobs.profile_file import parse_profile
from autotune.report.status import document as as_json
from autotune.report.status import print_status
from autotune.safety.journal import Journal
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import applied_path, applied_profile_path, journal_path
from autotune.safety.restore import restore
from autotune.system.array import Array, find_array

KNOBS = {"stripe_cache_size": 256, "read_ahead_kb": 384}
"""As they are."""


@pytest.fixture
def machine(tmp_path: Path) -> fake_sysfs.FakeMachine:
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("proc/sys/kernel/random/boot_id", "now")
    return machine


def apply(array: Array, boot: str = "now", **changed: object) -> None:
    """Leave what an applied profile leaves; the values are there already."""
    path = applied_path(array.root, array.uuid)
    path.parent.mkdir(exist_ok=True)
    head = {"kind": "open", "uuid": array.uuid, "device": array.device, "boot": boot, "pid": 1}
    path.write_text(json.dumps({**head, "originals": {}}) + "\n")
    path.chmod(0o600)
    applied_profile_path(array.root, array.uuid).write_text(json.dumps(profile(**changed)))


def persist(array: Array, **changed: object) -> None:
    path = profile_path(array.uuid, array.root)
    path.parent.mkdir(parents=True)
    text = json.dumps(profile(**changed))
    path.write_text(text)
    (array.root / NOTING).write_text("exit 0\n")
    rule = rule_path(array.uuid, array.root)
    rule.parent.mkdir(parents=True, exist_ok=True)
    rule.write_text(rule_text(udev.persisted(parse_profile(text, ""), array.uuid), text))


def profile(knobs: dict[str, int | str] | None = None, **proven_on: object) -> dict[str, Any]:
    return document(dict(KNOBS) if knobs is None else knobs, **proven_on)


def look(array: Array) -> ArrayStatus:
    return status(array, array.root)


def test_without_a_profile_there_is_nothing_to_be_wrong(machine: fake_sysfs.FakeMachine) -> None:
    found = look(find_array("md0", machine.root))
    assert found.good
    assert as_json(found)["profile"] is None


def test_an_applied_profile_that_every_knob_reads_as_is_good(
    machine: fake_sysfs.FakeMachine,
) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    found = look(array)
    assert found.good
    assert found.notes == (NOT_PROVEN,)
    shown = as_json(found)
    assert (shown["ok"], shown["profile"], shown["how"]) == (True, "elsewhere", "applied")
    assert all(knob["same"] for knob in shown["knobs"].values())


def test_a_reboot_ends_what_was_applied_but_not_what_is_persisted(
    machine: fake_sysfs.FakeMachine,
) -> None:
    array = find_array("md0", machine.root)
    apply(array, boot="earlier")
    assert not active(array, array.root)
    persist(array, members=5)
    assert [each.how for each in active(array, array.root)] == ["persisted"]
    apply(array)
    assert [each.how for each in active(array, array.root)] == ["applied", "persisted"]
    assert look(array).good


def test_a_persisted_profile_without_its_rule_is_wrong(machine: fake_sysfs.FakeMachine) -> None:
    """As after a power cut while another one was persisted."""
    array = find_array("md0", machine.root)
    persist(array)
    assert look(array).good
    rule_path(array.uuid, array.root).unlink()
    (fault,) = look(array).faults
    assert fault.startswith('The profile "elsewhere" is not set at the next start, since')


@pytest.mark.parametrize("gone", [True, False])
@pytest.mark.parametrize(("level", "fits"), [("raid6", True), ("raid5", False)])
def test_no_command_is_told_that_would_be_refused(
    machine: fake_sysfs.FakeMachine, level: str, fits: bool, gone: bool
) -> None:
    """As where an array of level 5 has grown to level 6."""
    array = find_array("md0", machine.root)
    persist(array, level=level)
    rule = rule_path(array.uuid, array.root)
    rule.unlink() if gone else rule.write_text("cut")
    (fault,) = look(array).faults
    assert (f"`autotune apply {profile_path(array.uuid)} /dev/md0 --persist` " in fault) is fits
    assert fault.endswith("`autotune unpersist /dev/md0` removes it.")


def test_a_rule_without_its_profile_is_wrong(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    persist(array)
    profile_path(array.uuid, array.root).unlink()
    found = look(array)
    assert not found.good
    assert "autotune unpersist" in found.faults[0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda rule: "",
        lambda rule: rule[:900],
        lambda rule: rule.replace("384", "768"),
        lambda rule: f"{rule}#\n",
        # Versions before wrote not so much: whether one of theirs is cut is all that can be seen.
        lambda rule: rule[: rule.index('\nLABEL="autotune_end"')],
    ],
)
def test_a_rule_that_is_not_whole_is_wrong(
    machine: fake_sysfs.FakeMachine, damage: Callable[[str], str]
) -> None:
    array = find_array("md0", machine.root)
    persist(array)
    rule = rule_path(array.uuid, array.root)
    whole = rule.read_text()
    rule.write_text(damage(whole))
    assert rule.read_text() != whole
    (fault,) = look(array).faults
    assert fault.startswith(f"{rule} is not as autotune wrote it, so nobody knows what it sets")
    assert f"`autotune apply {profile_path(array.uuid)} /dev/md0 --persist`" in fault


def test_a_rule_of_an_earlier_version_is_as_good(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    persist(array)
    rule = rule_path(array.uuid, array.root)
    rule.write_text(rule.read_text().partition(DIGEST)[0])
    assert look(array).good


@pytest.mark.parametrize("emptied", [False, True])
def test_rules_for_disks_whose_script_is_gone_are_wrong(
    machine: fake_sysfs.FakeMachine, emptied: bool
) -> None:
    array = find_array("md0", machine.root)
    persist(array, knobs={"scheduler": "none"})
    assert not look(array).faults
    script = array.root / NOTING
    script.write_text("") if emptied else script.unlink()
    (fault,) = look(array).faults
    assert f"sets nothing on disks, since {script} is gone" in fault


def test_without_rules_for_disks_the_script_is_not_needed(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    persist(array)
    (array.root / NOTING).unlink()
    assert look(array).good


@pytest.mark.parametrize("text", ["", "garbage\n"])
def test_a_record_that_cannot_be_undone_is_wrong(
    machine: fake_sysfs.FakeMachine, text: str
) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    applied_path(array.root, array.uuid).write_text(text)
    found = look(array)
    assert not found.good
    assert "is not known" in found.faults[0]


def test_a_damaged_profile_hides_no_other(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    persist(array)
    applied_profile_path(array.root, array.uuid).write_text("{")
    found = look(array)
    assert found.active is not None
    assert found.active.how == "persisted"
    assert as_json(found)["persisted"]
    (fault,) = found.faults
    assert "apply it anew" in fault
    with pytest.raises(UsageError, match="apply it anew"):
        active(array, array.root)


@pytest.mark.parametrize("fault", ["damaged", *(["writable"] if os.geteuid() == 0 else [])])
@pytest.mark.parametrize("how", ["applied", "persisted"])
def test_what_cannot_be_used_is_not_taken_for_the_original(
    machine: fake_sysfs.FakeMachine, how: str, fault: str
) -> None:
    array = find_array("md0", machine.root)
    make = apply if how == "applied" else persist
    make(array)
    refuse_damaged(array, array.root)
    applied = how == "applied"
    path = (
        applied_profile_path(array.root, array.uuid)
        if applied
        else profile_path(array.uuid, array.root)
    )
    if fault == "damaged":
        path.write_text("{")
    else:
        path.chmod(0o664)
    with pytest.raises(RefusalError, match="restore /dev/md0" if applied else "reboot"):
        refuse_damaged(array, array.root)


def test_a_run_or_guard_under_way_is_no_fault(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    path = journal_path(array.root, array.uuid)
    journal = new_journal(path, array.uuid, array.device, [])
    found = look(array)
    assert found.good
    assert any("is under way" in note for note in found.notes)
    journal.release()
    assert not look(array).good


def test_another_profile_that_is_persisted_is_named(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    persist(array, knobs={"stripe_cache_size": 512})
    found = look(array)
    assert found.good
    assert found.active is not None
    assert found.active.how == "applied"
    assert any("Another profile" in note for note in found.notes)


def test_a_knob_turned_by_hand_differs(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    machine.put("sys/block/md0/md/stripe_cache_size", "300")
    found = look(array)
    assert not found.good
    (knob,) = [each for each in found.knobs if not each.same]
    assert (knob.knob, knob.wanted, knob.value) == ("stripe_cache_size", 256, 300)
    assert knob.by == ("By hand, by another program, or by `autotune restore`.",)


def test_a_rule_that_sets_the_knob_is_named_with_its_line(machine: fake_sysfs.FakeMachine) -> None:
    machine.put(
        "etc/udev/rules.d/99-mine.rules",
        '# mine\nKERNEL=="md0", ATTR{md/stripe_cache_size}="300"\n',
    )
    array = find_array("md0", machine.root)
    apply(array, knobs={"stripe_cache_size": 4096, "read_ahead_kb": 512})
    machine.put("sys/block/md0/md/stripe_cache_size", "300")
    by = {knob.knob: " ".join(knob.by) for knob in look(array).knobs}
    assert "/etc/udev/rules.d/99-mine.rules:2" in by["stripe_cache_size"]
    assert "99-mine" not in by["read_ahead_kb"]
    # An array that was stopped and assembled reads the kernel's own values.
    assert "assembled" in by["read_ahead_kb"]


@pytest.mark.parametrize(
    ("proven_on", "good"),
    [({"level": "raid5"}, False), ({"media": "ssd"}, False), ({"members": 4}, True)],
)
def test_an_array_of_another_class_is_said_to_be(
    machine: fake_sysfs.FakeMachine, proven_on: dict[str, object], good: bool
) -> None:
    array = find_array("md0", machine.root)
    apply(array, **proven_on)
    found = look(array)
    assert found.good == good
    assert bool(found.misfits) != good
    assert bool(set(found.notes) - {NOT_PROVEN}) == good


def test_a_knob_that_is_not_there_differs(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array, knobs={"sync_io_depth": 64, "turbo": 1})
    found = look(array)
    assert not found.good
    assert [knob.value for knob in found.knobs] == [None, None]


def test_a_journal_that_was_left_and_a_broken_file_are_faults(
    machine: fake_sysfs.FakeMachine,
) -> None:
    array = find_array("md0", machine.root)
    path = journal_path(array.root, array.uuid)
    new_journal(path, array.uuid, array.device, [], array.root).release()
    assert "autotune restore" in " ".join(look(array).faults)
    path.unlink()
    apply(array)
    applied_profile_path(array.root, array.uuid).write_text("{")
    assert "is not valid" in " ".join(look(array).faults)


def test_what_was_applied_without_a_profile_is_said(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    applied_profile_path(array.root, array.uuid).unlink()
    found = look(array)
    assert found.good
    assert "without a profile" in found.notes[0]


def test_a_restore_takes_the_profile_away_too(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    assert restore(Journal.claimed(applied_path(array.root, array.uuid)), machine.root).complete
    assert not list((machine.root / "applied").iterdir())
    assert not active(array, array.root)


def test_the_exit_code_says_whether_all_is_well(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = find_array("md0", machine.root)
    monkeypatch.setattr("autotune.system.array.list_arrays", lambda: [array])
    words = ["status", "--json", "--state-dir", str(machine.root)]
    apply(array)
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == (0, True)
    machine.put("sys/block/md0/queue/read_ahead_kb", "128")
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == (1, False)
    plain = CliRunner().invoke(app, words[:1] + words[2:])
    assert plain.exit_code == 1
    assert "differs" in plain.stdout
    assert max(map(len, plain.stdout.splitlines()[1:4])) <= 80


@pytest.mark.parametrize(
    ("kept", "said"),
    [(KNOBS, "applied, and persisted"), ({"read_ahead_kb": 512}, "until a reboot")],
)
def test_what_is_applied_is_persisted_only_if_that_is_the_same(
    machine: fake_sysfs.FakeMachine, kept: dict[str, int | str], said: str
) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    persist(array, knobs=kept)
    out = io.StringIO()
    print_status(Console(file=out, width=80), look(array))
    assert said in out.getvalue()
    assert ("is applied at each start" in out.getvalue()) == (kept != KNOBS)


def test_disks_that_differ_are_no_missing_knob(machine: fake_sysfs.FakeMachine) -> None:
    array = find_array("md0", machine.root)
    apply(array, knobs={"nr_requests": 64})
    first = array.root / "sys/block" / array.disks[0] / "queue/nr_requests"
    first.write_text("17\n")
    (knob,) = look(array).knobs
    assert not knob.same
    assert "its disks read different values (17," in knob.by[0]


def test_a_run_that_was_not_cleaned_up_may_have_changed_it(
    machine: fake_sysfs.FakeMachine,
) -> None:
    array = find_array("md0", machine.root)
    apply(array)
    (array.md / "stripe_cache_size").write_text("777\n")
    assert "By hand" in look(array).knobs[0].by[0]
    journal = journal_path(array.root, array.uuid)
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.touch()
    assert "By the run" in look(array).knobs[0].by[0]
