"""The main job on real arrays: each test runs a file of tests in the lab."""

import sys
from pathlib import Path

import pytest
from conftest import OWN, Lab

pytestmark = pytest.mark.lab

PYTEST = (sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--durations=5")


SAMPLE = {
    "guest_design.py": "sample",
    "guest_faults.py": "sample",
    "guest_faults_above.py": "sample",
    "guest_guard.py": "sample",
}
"""Of a matrix, the few cells that stand for the rest; `make faults` runs all."""

LIMIT_S = {"guest_retune.py": 1800, "guest_design.py": 3600}
"""Of what takes longer than a quarter of an hour."""


@pytest.mark.parametrize(
    ("scenario", "tests"),
    [
        ("raid5-hdd", "guest_filesystem.py"),
        ("raid5-hdd", "guest_scratch.py"),
        ("raid5-ssd", "guest_layers.py"),
        pytest.param("raid5-ssd", "guest_ownership.py", marks=pytest.mark.slow),
        ("raid5-hdd", "guest_rebuild.py"),
        pytest.param("raid5-hdd", "guest_watch.py", marks=pytest.mark.slow),
        ("raid5-hdd", "guest_guard.py"),
        ("raid5-hdd", "guest_hanging.py"),
        pytest.param("tests/lab/forecast.toml", "guest_forecast.py", marks=pytest.mark.slow),
        ("tests/lab/check.toml", "guest_check.py"),
        pytest.param("tests/lab/check.toml", "guest_check_kills.py", marks=pytest.mark.slow),
        ("tests/lab/partitions.toml", "guest_shared.py"),
        pytest.param(
            "tests/lab/partitions.toml", "guest_shared_profiles.py", marks=pytest.mark.slow
        ),
        pytest.param("tests/lab/neighbours.toml", "guest_neighbours.py", marks=pytest.mark.slow),
        pytest.param("tests/lab/advise.toml", "guest_advise.py", marks=pytest.mark.slow),
        ("raid6-hdd", "guest_gate.py"),
        ("raid6-hdd", "guest_run.py"),
        ("tests/lab/design.toml", "guest_design.py"),
        pytest.param("tests/lab/design.toml", "guest_late.py", marks=pytest.mark.slow),
        ("raid6-hdd", "guest_knobs.py"),
        pytest.param("raid5-ssd", "guest_scsi.py", marks=pytest.mark.slow),
        pytest.param("raid1-hdd", "guest_time_base.py", marks=pytest.mark.slow),
        ("tests/lab/fewer.toml", "guest_import.py"),
        pytest.param("tests/lab/probe.toml", "guest_probe.py", marks=pytest.mark.slow),
        ("tests/lab/faults.toml", "guest_faults.py"),
        pytest.param("tests/lab/faults.toml", "guest_faults_above.py", marks=pytest.mark.slow),
        ("tests/lab/elsewhere.toml", "guest_persist.py"),
        ("tests/lab/moved.toml", "guest_moved.py"),
        pytest.param("tests/lab/elsewhere.toml", "guest_exports.py", marks=pytest.mark.slow),
        pytest.param("tests/lab/elsewhere.toml", "guest_ansible.py", marks=pytest.mark.slow),
        pytest.param("raid6-hdd", "guest_tune.py", marks=pytest.mark.quiet),
        pytest.param(
            "raid6-hdd", "guest_disturbed.py", marks=(pytest.mark.quiet, pytest.mark.slow)
        ),
        pytest.param("raid6-hdd", "guest_retune.py", marks=(pytest.mark.quiet, pytest.mark.slow)),
        pytest.param("raid5-hdd", "guest_live.py", marks=(pytest.mark.quiet, pytest.mark.slow)),
        pytest.param("raid5-hdd", "guest_ceiling.py", marks=(pytest.mark.quiet, pytest.mark.slow)),
        pytest.param(
            "tests/lab/guard.toml", "guest_load.py", marks=(pytest.mark.quiet, pytest.mark.slow)
        ),
    ],
)
def test_in_the_lab(lab: Lab, scenario: str, tests: str) -> None:
    in_the_lab(lab, scenario, tests, SAMPLE.get(tests, "not slow"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "tests", "which"),
    [
        ("raid5-hdd", "guest_filesystem.py", "slow"),
        ("raid5-ssd", "guest_ownership.py", "slow"),
        ("raid5-ssd", "guest_layers.py", "slow"),
        ("raid5-hdd", "guest_rebuild.py", "slow"),
        ("raid6-hdd", "guest_knobs.py", "slow"),
        ("raid6-hdd", "guest_gate.py", "slow"),
        ("tests/lab/moved.toml", "guest_moved.py", "slow"),
        ("raid5-hdd", "guest_watch.py", "slow"),
        ("raid5-hdd", "guest_guard.py", "not sample"),
        ("raid5-hdd", "guest_hanging.py", "slow"),
        ("tests/lab/forecast.toml", "guest_forecast.py", "slow"),
        ("tests/lab/check.toml", "guest_check.py", "slow"),
        ("tests/lab/design.toml", "guest_design.py", "not sample"),
        ("tests/lab/advise.toml", "guest_advise.py", "slow"),
        ("tests/lab/neighbours.toml", "guest_neighbours.py", "slow"),
        ("tests/lab/fewer.toml", "guest_import.py", "slow"),
        ("tests/lab/elsewhere.toml", "guest_exports.py", "slow"),
        ("tests/lab/elsewhere.toml", "guest_persist.py", "slow"),
    ],
)
def test_the_rest_in_the_lab(lab: Lab, scenario: str, tests: str, which: str) -> None:
    in_the_lab(lab, scenario, tests, which)


def in_the_lab(lab: Lab, scenario: str, tests: str, which: str) -> None:
    command = [*PYTEST, OWN, "-m", which, str(Path("tests/lab") / tests)]
    result = lab(scenario, command, timeout_s=LIMIT_S.get(tests, 900))
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
