"""A profile of raid6-hdd taken to another machine as an Ansible role, and played there, on
elsewhere.toml; `test_run.py` runs this there. Each task starts a Python, so it takes minutes."""

import os
import subprocess
import sys
from pathlib import Path

from guest import autotune, knob_files, read

from autotune.export.ansible import role_name
from autotune.knobs import by_name, read_setting
from autotune.knobs.profile_file import load_profile
from autotune.system.array import find_array

PROFILE = Path(os.environ.get("AUTOTUNE_PROFILE", "examples/profile.json"))
PLAYBOOK = f"""
- hosts: localhost
  connection: local
  gather_facts: false
  roles:
    - role: {role_name(load_profile(PROFILE))}
      vars:
        autotune_array: /dev/md0
"""


def play(folder: Path, *words: str) -> str:
    """Play it; return how many tasks changed something. AssertionError if one failed."""
    environment = {
        **os.environ,
        "ANSIBLE_ROLES_PATH": str(folder),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_LOCAL_TEMP": str(folder / "tmp"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "tmp"),
        "ANSIBLE_INVENTORY": "localhost,",
        "LC_ALL": "C.UTF-8",
    }
    playbook = [str(Path(sys.executable).with_name("ansible-playbook")), *words]
    done = subprocess.run(
        [*playbook, str(folder / "site.yml"), "-e", f"ansible_python_interpreter={sys.executable}"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    (recap,) = [line for line in done.stdout.splitlines() if "changed=" in line]
    return recap.split("changed=")[1].split()[0]


def test_ansible_checks_runs_changes_nothing_twice_and_rolls_back(tmp_path: Path) -> None:
    array, wanted, before = find_array("md0"), load_profile(PROFILE).knobs, knob_files()
    out = tmp_path / "roles"
    done = autotune("export", PROFILE, "--format", "ansible", "--out", out, state=tmp_path)
    assert done.returncode == 0, done.stderr
    (out / "site.yml").write_text(PLAYBOOK)
    rule = Path(f"/etc/udev/rules.d/98-autotune-export-{array.uuid}.rules")
    assert play(out, "--check") != "0"
    assert (knob_files(), rule.exists()) == (before, False)
    assert play(out) != "0"
    assert read_setting(array, [by_name(name) for name in wanted]) == wanted
    assert array.mdadm_uuid in read(rule)
    assert play(out) == "0"
    (out / "site.yml").write_text(PLAYBOOK + "        autotune_state: absent\n")
    assert play(out) != "0"
    assert (knob_files(), rule.exists()) == (before, False)
    assert play(out) == "0"
