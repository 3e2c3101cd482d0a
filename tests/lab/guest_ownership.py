"""What root is asked to run or to obey though others can change it, on raid5-ssd, where files
have their real owners; `test_run.py` runs this there."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from guest import autotune

from autotune.service import CONFIG
from autotune.service.install import FOLDER

COMMAND = Path(sys.executable).with_name("autotune")
UNITS = Path("/") / FOLDER


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder in which everybody can put one file in the place of another; not in /tmp, from
    where units can run nothing."""
    folder = Path("/run/ownership") / tmp_path.name / "shared"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    return folder


def installed(command: Path) -> subprocess.CompletedProcess[str]:
    words = [command, "service", "install"]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def units() -> set[Path]:
    return set(UNITS.rglob("*autotune*"))


def test_the_service_runs_no_program_in_a_folder_of_everybody(shared: Path) -> None:
    program, before = shared / "autotune", units()
    shutil.copy(COMMAND, program)
    done = installed(program)
    assert done.returncode == 1, done.stdout
    assert f"Root would run what others can change: {shared} can be written to" in done.stderr
    assert "Traceback" not in done.stderr
    assert units() == before
    # One that lies safely, but leads there.
    link = shared.parent / "autotune"
    link.symlink_to(program)
    assert f"{shared} can be written to" in installed(link).stderr
    shared.chmod(0o755)
    assert str(shared) not in installed(program).stderr


@pytest.mark.slow
def test_nor_is_a_command_for_events_or_a_configuration_there_used(
    shared: Path, tmp_path: Path
) -> None:
    hook = shared / "hook"
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    CONFIG.parent.mkdir(parents=True, exist_ok=True)
    CONFIG.write_text(f'[notify]\ncommand = ["{hook}"]\n')
    CONFIG.chmod(0o644)
    before = units()
    checked = autotune("config", "check", state=tmp_path)
    assert checked.returncode == 1
    assert f"would not be run: {shared} can be written to" in checked.stdout
    # A checkout that is not root's is refused before that.
    refused = installed(COMMAND)
    assert refused.returncode == 1
    assert "Root would run" in refused.stderr
    assert units() == before
    CONFIG.write_text("")
    CONFIG.chmod(0o666)
    checked = autotune("config", "check", state=tmp_path)
    assert checked.returncode == 2
    assert "is not used by root" in checked.stderr
    CONFIG.unlink()
