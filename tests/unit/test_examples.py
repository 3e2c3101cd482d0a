"""What lies in examples/ is understood by what it is an example for."""

import ast
from pathlib import Path

from autotune.knobs.profile_file import load_profile
from autotune.lab.scenario import load
from autotune.measure.workload import load_workload
from autotune.service.config import load_config

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_workload_is_valid() -> None:
    assert load_workload(str(EXAMPLES / "backup-target.toml")).name == "backup-target"


def test_the_example_scenario_is_valid() -> None:
    assert load(str(EXAMPLES / "mirror.toml"))


def test_the_example_profile_is_valid() -> None:
    assert load_profile(EXAMPLES / "profile.json").knobs


def test_the_example_configuration_is_valid() -> None:
    config = load_config(EXAMPLES / "config.toml")
    assert config.care("0123456789abcdef" * 2).guard_ns == 2e8


def test_the_example_script_is_python() -> None:
    ast.parse((EXAMPLES / "tune.py").read_text())
