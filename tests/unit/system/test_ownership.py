"""What root runs or obeys is root's own, all the way down to it."""

import os
import sys
from pathlib import Path

import fake_sysfs
import pytest
import some_profile

from autotune import durable
from autotune.deploy.in_force import active
from autotune.deploy.persisted import profile_path
from autotune.deploy.status import status
from autotune.errors import RefusalError, UsageError
from autotune.knobs.profile_file import save_profile
from autotune.service import install
from autotune.service.config import load_config
from autotune.system import ownership
from autotune.system.array import find_array

ROOT = os.geteuid() == 0
OTHERS = 65534


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "above" / "folder"
    folder.mkdir(parents=True)
    file = folder / "file"
    file.write_text("x")
    for path in (folder.parent, folder, file):
        path.chmod(0o755)
    return file


def test_what_only_its_owner_can_change_is_trusted(file: Path) -> None:
    assert ownership.fault(file) is None
    assert ownership.fault(Path("/bin/sh")) is None
    assert ownership.fault(file.parent / "not-there") is None


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("up", [0, 1, 2])
def test_what_others_can_change_is_not_nor_is_what_lies_below_it(
    file: Path, mode: int, up: int
) -> None:
    path = (file, *file.parents)[up]
    path.chmod(mode)
    found = ownership.fault(file)
    assert found
    assert f"{path} can be written to" in found
    assert "chmod go-w" in found


@pytest.mark.skipif(not ROOT, reason="only root gives files away")
def test_in_a_lab_the_files_of_who_has_started_it_are_its_roots(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a host where each user has a group of his own, they may be open to that."""
    os.chown(file, OTHERS, OTHERS)
    file.chmod(0o664)
    assert ownership.fault(file)
    cmdline = tmp_path / "cmdline"
    cmdline.write_text(f"ro {durable.LAB_USER}{OTHERS} con=null\n")
    monkeypatch.setattr(durable, "CMDLINE", cmdline)
    durable.lab_user.cache_clear()
    try:
        assert ownership.fault(file) is None
        os.chown(file, 1, 1)
        assert ownership.fault(file)
        cmdline.write_text(f"ro {durable.LAB_USER}0 con=null\n")
        durable.lab_user.cache_clear()
        assert ownership.fault(file)
    finally:
        durable.lab_user.cache_clear()


def test_a_sticky_folder_keeps_what_is_the_owners(file: Path) -> None:
    file.parent.chmod(0o1777)
    assert ownership.fault(file) is None


def test_a_link_is_as_good_as_what_it_leads_to(file: Path, tmp_path: Path) -> None:
    link, second = tmp_path / "link", tmp_path / "second"
    link.symlink_to(Path("above/../above/folder/file"))
    second.symlink_to(link)
    assert ownership.fault(second) is None
    file.parent.chmod(0o777)
    assert str(file.parent) in str(ownership.fault(second))
    # One that leads to itself ends, too.
    (tmp_path / "loop").symlink_to("loop")
    ownership.fault(tmp_path / "loop")


@pytest.mark.skipif(not ROOT, reason="only root can give files away")
def test_what_belongs_to_somebody_else_is_not_trusted(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    os.chown(link, OTHERS, OTHERS, follow_symlinks=False)
    assert "belongs to" in str(ownership.fault(link))
    os.chown(file.parent, OTHERS, OTHERS)
    assert "belongs to" in str(ownership.fault(file))


@pytest.mark.parametrize("what", ["the configuration", "its workload"])
def test_a_configuration_that_others_can_change_is_not_used_by_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    workload, config = tmp_path / "w.toml", tmp_path / "config.toml"
    text = (Path(__file__).parents[3] / "profiles/workloads/quick.toml").read_text()
    workload.write_text(text)
    config.write_text(f'[defaults]\nworkload = "{workload}"\n')
    for path in (workload, config):
        path.chmod(0o644)
    (config if what == "the configuration" else workload).chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match=r"is not used by root: .*(chmod go-w|chown root)"):
        load_config(config)
    monkeypatch.setattr(os, "geteuid", lambda: 1)
    assert load_config(config).defaults.workload == str(workload), "others may read it"


def test_a_profile_in_force_that_others_can_change_is_not_used_by_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Passes of re-tuning measure against what it says and put that back."""
    fake_sysfs.raid6(tmp_path)
    array = find_array("md0", tmp_path)
    path = profile_path(array.uuid, tmp_path)
    save_profile(some_profile.profile(), path)
    path.chmod(0o666)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(UsageError, match=r"not used by root"):
        active(array, tmp_path / "state")
    assert "not used by root" in status(array, tmp_path / "state").faults[0]


def test_the_service_does_not_run_a_program_that_others_can_change(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = file.with_name("autotune")
    command.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "argv", [str(command)])
    monkeypatch.setattr(install, "PRIVATE", ())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    file.parent.chmod(0o777)
    with pytest.raises(RefusalError, match=r"Root would run what others can change.*/opt/autotune"):
        install.command()


@pytest.mark.skipif(not ROOT, reason="a user's own packages are not root's")
def test_nor_one_whose_packages_others_can_change(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, library = file.with_name("autotune"), tmp_path / "library"
    command.write_text("#!/bin/sh\n")
    (library / "deep").mkdir(parents=True)
    (library / "deep/module.py").touch(0o644)
    monkeypatch.setattr(sys, "argv", [str(command)])
    monkeypatch.setattr(install, "PRIVATE", ())
    monkeypatch.setattr(sys, "path", [str(library)])
    assert install.command() == command
    (library / "deep/module.py").chmod(0o666)
    with pytest.raises(RefusalError, match=r"module\.py"):
        install.command()
