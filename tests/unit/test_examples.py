"""What lies in examples/ is understood by what it is an example for."""

import ast
from pathlib import Path

from autotune.lab.scenario import load
from autotune.profile import load_profile
from autotune.workload import load_workload

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_workload_is_valid() -> None:
    assert load_workload(str(EXAMPLES / "backup-target.toml")).name == "backup-target"


def test_the_example_scenario_is_valid() -> None:
    assert load(str(EXAMPLES / "mirror.toml"))


def test_the_example_profile_is_valid() -> None:
    assert load_profile(EXAMPLES / "profile.json").knobs


def test_the_example_script_is_python() -> None:
    ast.parse((EXAMPLES / "tune.py").read_text())
