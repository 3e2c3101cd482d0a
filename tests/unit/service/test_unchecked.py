"""Arrays that nobody checks, since the system's own checks were turned off for ours."""

import contextlib
import fcntl
import json
import os
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import fake_sysfs
import pytest
import typer

from autotune.checking import overdue, stored
from autotune.checking.record import CheckHistory, CheckRecord, Part
from autotune.cli import doctor, retune, service, status
from autotune.errors import AutotuneError, RefusalError, UsageError
from autotune.preflight import checks
from autotune.safety.paths import journal_path
from autotune.service import install, one_pass, take_over
from autotune.service import unchecked as unchecked_module
from autotune.service.config import fault
from autotune.service.unchecked import are_off, kept_from_work, refuse_if_unchecked, unchecked
from autotune.system import array as arrays
from autotune.system.array import find_array

pytestmark = pytest.mark.skipif(not shutil.which("systemctl"), reason="needs systemctl")
CRON = "57 0 * * 0 root /usr/share/mdadm/checkarray --cron --all\n"
MD1 = "11111111-22222222-33333333-44444444"
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
NOBODY = "Nobody checks /dev/md0, since it is a test."


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> fake_sysfs.FakeMachine:
    """Debian's, with an array that autotune checks in its place."""
    machine = fake_sysfs.raid6(tmp_path)
    machine.put("etc/cron.d/mdadm", CRON)
    machine.put("etc/default/mdadm", "AUTOCHECK=true")
    configured(machine, "[defaults]\ncheck_every = '30d'")
    autotune = str(Path(sys.executable).with_name("autotune"))
    monkeypatch.setattr(sys, "argv", [autotune])
    monkeypatch.setattr(install, "PRIVATE", ())
    refuse_if_unchecked(tmp_path)
    install.install(tmp_path)
    take_over.take(tmp_path)
    return machine


def configured(machine: fake_sysfs.FakeMachine, text: str) -> None:
    machine.put("etc/autotune/config.toml", text)


def another_array(machine: fake_sysfs.FakeMachine, level: str = "raid1") -> None:
    machine.disk("sdx")
    machine.disk("sdy")
    machine.array("md1", level, ["sdx", "sdy"], uuid=MD1)


def test_one_that_is_checked_is_not_named(machine: fake_sysfs.FakeMachine) -> None:
    assert are_off(machine.root)
    assert unchecked(machine.root) == {}
    refuse_if_unchecked(machine.root)
    another_array(machine, "raid0")
    assert unchecked(machine.root) == {}


def test_one_that_came_later_has_no_timer_until_the_service_is_installed_again(
    machine: fake_sysfs.FakeMachine,
) -> None:
    another_array(machine)
    assert list(unchecked(machine.root)) == ["/dev/md1"]
    assert "run `autotune service install`, which" in unchecked(machine.root)["/dev/md1"]
    install.install(machine.root)
    assert unchecked(machine.root) == {}


def test_one_that_is_not_configured_any_more_keeps_the_service_from_being_installed(
    machine: fake_sysfs.FakeMachine,
) -> None:
    configured(machine, "")
    assert "set check_every for it" in unchecked(machine.root)["/dev/md0"]
    with pytest.raises(RefusalError, match=r"check /dev/md0 then.*service remove` turns the"):
        refuse_if_unchecked(machine.root)
    take_over.give_back(machine.root)
    assert not are_off(machine.root)
    assert unchecked(machine.root) == {}


def test_an_array_that_autotune_cannot_check_needs_the_systems_checks(
    machine: fake_sysfs.FakeMachine,
) -> None:
    another_array(machine)
    machine.put("sys/block/md1/md/metadata_version", "external:/md127/0")
    configured(machine, "[defaults]\ncheck_every = '30d'")
    with pytest.raises(RefusalError, match=r"cannot check /dev/md1 .*; `autotune service remove`"):
        refuse_if_unchecked(machine.root)
    take_over.give_back(machine.root)
    with pytest.raises(RefusalError, match="leave out --take-over-checks"):
        refuse_if_unchecked(machine.root)


def test_what_somebody_turned_on_again_checks_them(machine: fake_sysfs.FakeMachine) -> None:
    configured(machine, "")
    machine.put("etc/default/mdadm", "AUTOCHECK=true")
    assert not are_off(machine.root)
    assert unchecked(machine.root) == {}


def test_with_a_faulty_configuration_nobody_checks_any(machine: fake_sysfs.FakeMachine) -> None:
    another_array(machine, "raid0")
    configured(machine, "[defaults]\ncheck_evry = '30d'")
    for found in (unchecked(machine.root), overdue.not_checked(machine.root)):
        assert list(found) == ["/dev/md0"]
        assert found["/dev/md0"].startswith("Nobody checks /dev/md0: The configuration")
        assert "check_evry" in found["/dev/md0"]
    take_over.give_back(machine.root)
    assert unchecked(machine.root) == {}


def test_who_may_not_read_the_configuration_is_told_nothing(
    machine: fake_sysfs.FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(machine, "[")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert unchecked(machine.root) == {}
    assert kept_from_work(machine.root) == []

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refuse)
    assert fault(machine.root / "etc/autotune/config.toml") is None


def test_a_faulty_configuration_keeps_an_enabled_service_from_its_work(
    machine: fake_sysfs.FakeMachine,
) -> None:
    assert kept_from_work(machine.root) == []
    configured(machine, "[")
    (text,) = kept_from_work(machine.root)
    assert text.startswith("The service starts no check, guard or re-tuning until its config")
    shutil.rmtree(machine.root / install.FOLDER)
    assert kept_from_work(machine.root) == []
    guard = machine.root / install.FOLDER / "dev.wants/autotune-guard@0:1:2:3.service"
    guard.parent.mkdir(parents=True)
    guard.symlink_to("/usr/lib/systemd/system/autotune-guard@.service")
    assert len(kept_from_work(machine.root)) == 1


def test_a_timer_that_is_masked_checks_nothing(machine: fake_sysfs.FakeMachine) -> None:
    (link,) = (machine.root / install.FOLDER).glob("*.wants/autotune-check@*.timer")
    (machine.root / install.FOLDER / link.name).symlink_to("/dev/null")
    assert f"run `systemctl unmask {link.name}`" in unchecked(machine.root)["/dev/md0"]


def history(machine: fake_sysfs.FakeMachine) -> Path:
    array = find_array("md0", machine.root)
    return stored.path_of(machine.root / "var/lib/autotune", array.uuid)


def read_whole(machine: fake_sysfs.FakeMachine, began: datetime) -> None:
    part = Part(start=0, end=8, began=began)
    whole = CheckRecord(began=began, array="", members=(), size=8, parts=(part,), ended=began)
    stored.save(CheckHistory(checks=(whole,)), history(machine))


def test_one_that_no_check_has_read_for_long_is_named(machine: fake_sysfs.FakeMachine) -> None:
    assert overdue.not_checked(machine.root) == {}
    now = datetime.now(UTC)
    read_whole(machine, now - timedelta(days=45))
    assert overdue.not_checked(machine.root) == {}
    read_whole(machine, now - timedelta(days=61))
    text = overdue.not_checked(machine.root)["/dev/md0"]
    assert "has read all of /dev/md0, though check_every is 30d" in text
    take_over.give_back(machine.root)
    assert overdue.not_checked(machine.root) == {}


def test_so_is_one_that_none_has_ever_read(machine: fake_sysfs.FakeMachine) -> None:
    (link,) = (machine.root / install.FOLDER).glob("*.wants/autotune-check@*.timer")
    long_ago = datetime.now(UTC).timestamp() - 61 * 86_400
    os.utime(link, (long_ago, long_ago), follow_symlinks=False)
    assert "has read all of /dev/md0" in overdue.not_checked(machine.root)["/dev/md0"]


def test_and_one_whose_checks_cannot_be_known(machine: fake_sysfs.FakeMachine) -> None:
    history(machine).parent.mkdir(parents=True)
    history(machine).write_text("{ torn")
    text = overdue.not_checked(machine.root)["/dev/md0"]
    assert text.startswith("Nobody checks /dev/md0: ")
    assert "is damaged" in text


@pytest.fixture
def told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> pytest.CaptureFixture[str]:
    """Commands that find md0, which nobody checks."""
    fake_sysfs.raid6(tmp_path)
    monkeypatch.setattr(arrays, "list_arrays", lambda: [find_array("md0", tmp_path)])
    monkeypatch.setattr(overdue, "not_checked", lambda: {"/dev/md0": NOBODY})
    monkeypatch.setattr(checks, "require_root", lambda: None)
    return capsys


def test_status_calls_it_a_fault(tmp_path: Path, told: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        status.status(None, as_json=True, state_dir=tmp_path)
    assert ended.value.exit_code == 1
    (found,) = json.loads(told.readouterr().out)["arrays"]
    assert found["faults"] == [NOBODY]


def test_status_says_that_the_service_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(overdue, "not_checked", dict)
    monkeypatch.setattr(unchecked_module, "kept_from_work", lambda: ["The service does nothing."])
    with pytest.raises(typer.Exit):
        status.status(None, as_json=True, state_dir=tmp_path)
    assert json.loads(told.readouterr().out)["left"] == ["The service does nothing."]


def test_status_calls_it_a_fault_that_a_recovery_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: pytest.CaptureFixture[str]
) -> None:
    """As where a check and its guardian are paused, and a spare takes a failed member's place."""
    monkeypatch.setattr(overdue, "not_checked", dict)
    md = tmp_path / "sys/block/md0/md"
    status.status(None, as_json=True, state_dir=tmp_path)
    told.readouterr()
    (md / "sync_max").write_text("65536\n")
    for action, said in (
        ("recover", "bounded by sync_max (65536 sectors)"),
        ("idle", "would stand still at sync_max (65536 sectors)"),
    ):
        (md / "sync_action").write_text(f"{action}\n")
        with pytest.raises(typer.Exit):
            status.status(None, as_json=True, state_dir=tmp_path)
        (found,) = json.loads(told.readouterr().out)["arrays"]
        assert said in found["faults"][0]


def test_doctor_says_so(tmp_path: Path, told: pytest.CaptureFixture[str]) -> None:
    with contextlib.suppress(typer.Exit):
        doctor.doctor(None, as_json=True, state_dir=tmp_path)
    findings = json.loads(told.readouterr().out)["arrays"]["/dev/md0"]
    assert {"severity": "warn", "message": NOBODY} in findings


@pytest.mark.parametrize("error", [UsageError, RefusalError])
def test_doctor_tells_the_rest_where_the_units_cannot_be_known(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    told: pytest.CaptureFixture[str],
    error: type[AutotuneError],
) -> None:
    def refuse() -> None:
        raise error(f"The configuration has a fault in array.{MD1}.")

    monkeypatch.setattr(install, "status", refuse)
    with contextlib.suppress(typer.Exit):
        doctor.doctor(None, as_json=True, state_dir=tmp_path)
    document = json.loads(told.readouterr().out)
    assert document["environment"]["units"] == "not known; `autotune service status` says why"
    assert "/dev/md0" in document["arrays"]


def test_doctor_has_no_fault_for_what_goes_on_with_another_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(arrays, "list_arrays", lambda: [])
    monkeypatch.setattr(doctor, "_environment", lambda _: {"autotune": "1"})
    journal = journal_path(tmp_path, "u")
    journal.parent.mkdir()
    head = {"uuid": "u", "device": "/dev/md5", "boot": "b", "pid": 7, "originals": {}}
    journal.write_text(json.dumps(head) + "\n")
    with journal.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        doctor.doctor(None, state_dir=tmp_path)
        assert "The run of process 7 on /dev/md5" in told.readouterr().out
        with pytest.raises(typer.Exit) as ended:
            doctor.doctor(None, as_json=True, state_dir=tmp_path)
        assert ended.value.exit_code == 0
    with pytest.raises(AutotuneError, match="not cleaned up"):
        doctor.doctor(None, state_dir=tmp_path)


def test_mismatches_that_only_the_stored_checks_know_leave_the_array_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: pytest.CaptureFixture[str]
) -> None:
    array = find_array("md0", tmp_path)
    part = Part(start=0, end=8, began=NOON, mismatches=8)
    known = CheckRecord(began=NOON, array="", members=(), size=8, parts=(part,), ended=NOON)
    stored.save(CheckHistory(checks=(known,)), stored.path_of(tmp_path, array.uuid))
    with contextlib.suppress(typer.Exit):
        doctor.doctor(None, as_json=True, state_dir=tmp_path)
    findings = json.loads(told.readouterr().out)["arrays"]["/dev/md0"]
    assert any("has found 8 sectors that differ" in each["message"] for each in findings)
    config = tmp_path / "config.toml"
    config.write_text("")
    monkeypatch.setattr(one_pass, "active", lambda *_: [SimpleNamespace(profile=None)])
    retune.retune(None, all_=True, config=config, as_json=True, state_dir=tmp_path)
    (report,) = json.loads(told.readouterr().out)
    assert report["outcome"] == "postponed"
    assert "has found 8 sectors that differ" in report["text"]


def test_a_pass_over_all_arrays_says_so(tmp_path: Path, told: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    retune.retune(None, all_=True, config=config, state_dir=tmp_path)
    assert NOBODY in told.readouterr().err.replace("\n", " ")


def test_no_service_is_installed_that_leaves_one_unchecked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: pytest.CaptureFixture[str]
) -> None:
    def refuse() -> None:
        raise RefusalError(NOBODY)

    monkeypatch.setattr(unchecked_module, "refuse_if_unchecked", refuse)
    monkeypatch.setattr(install, "install", lambda: [])
    monkeypatch.setattr(unchecked_module, "are_off", lambda: True)
    with pytest.raises(RefusalError, match="Nobody checks"):
        service.install(dry_run=False, take_over_checks=False, as_json=False)
    monkeypatch.setattr(unchecked_module, "are_off", lambda: False)
    service.install(dry_run=False, take_over_checks=False, as_json=False)
