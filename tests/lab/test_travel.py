"""A profile that was found on one array a moment ago, taken to another machine in every format."""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from conftest import OWN, Lab

from autotune.knobs.profile_file import load_profile

pytestmark = [pytest.mark.lab, pytest.mark.quiet, pytest.mark.slow]

AUTOTUNE = (sys.executable, "-m", "autotune")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider")
RUN = (
    *("run", "/dev/md0", "--destructive", "/dev/md0", "--workload", "quick", "--json"),
    *("--trials", "12", "--time", "5min", "--p99-ceiling", "resync=1s", "--ram-budget", "128MiB"),
)


def test_what_one_run_found_is_accepted_elsewhere_by_every_consumer(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The guests see what is below /var/tmp here, while /tmp is their own.
    with TemporaryDirectory(dir="/var/tmp") as folder:
        out = Path(folder)
        done = lab("raid6-hdd", (*AUTOTUNE, *RUN, "--state-dir", folder), out=out, timeout_s=900)
        assert done.returncode == 0, done.stdout + done.stderr
        found = json.loads(done.stdout)
        assert found["adopt"], found
        profile = load_profile(Path(found["profile_path"]))
        print(profile.knobs, profile.evidence.gain)
        monkeypatch.setenv("AUTOTUNE_PROFILE", found["profile_path"])
        for tests in ("guest_exports.py", "guest_ansible.py"):
            taken = lab(
                "tests/lab/elsewhere.toml", [*PYTEST, OWN, f"tests/lab/{tests}"], timeout_s=900
            )
            print(taken.stdout)
            assert taken.returncode == 0, taken.stdout + taken.stderr
