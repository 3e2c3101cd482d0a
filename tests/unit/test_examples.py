"""What lies in examples/ is understood by what it is an example for."""

import ast
import json
import re
from pathlib import Path

from autotune.lab.scenario import load
from autotune.measure.workload import load_workload
from autotune.problem.profile import load_profile
from autotune.service.config import load_config
from autotune.service.metrics import ArrayMetrics, GuardMetrics, write_guard_metrics, write_metrics

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_example_workload_is_valid() -> None:
    assert load_workload(str(EXAMPLES / "backup-target.toml")).name == "backup-target"


def test_the_example_scenario_is_valid() -> None:
    assert load(str(EXAMPLES / "mirror.toml"))


def test_the_example_profile_is_valid() -> None:
    assert load_profile(EXAMPLES / "profile.json").knobs


def test_the_example_configuration_is_valid() -> None:
    config = load_config(EXAMPLES / "config.toml")
    assert config.care("0123456789abcdef" * 2).guard_ns == 4e7


def test_the_dashboard_shows_metrics_that_there_are(tmp_path: Path) -> None:
    array = ArrayMetrics("d", "u", "p", True, 1.0, 1.0, "better", 1.0, (("a.p99", 1.0),))
    write_metrics(tmp_path / "all.prom", [array])
    write_guard_metrics(tmp_path / "guard.prom", GuardMetrics("d", "u", 1.0, True, 0.5, 1e6))
    text = "".join(file.read_text() for file in tmp_path.glob("*.prom"))
    there = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    panels = json.loads((EXAMPLES / "dashboard.json").read_text())["panels"]
    shown = re.findall(r"autotune_\w+", json.dumps([panel["targets"] for panel in panels]))
    assert shown
    assert set(shown) <= there


def test_the_example_script_is_python() -> None:
    ast.parse((EXAMPLES / "tune.py").read_text())
