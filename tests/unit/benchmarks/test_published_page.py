"""The page of published tables says what the benchmark would say of its own figures."""

import re
from pathlib import Path

import pytest

from benchmarks.panel.judge import Ratio
from benchmarks.published.tables import verdict

PAGE = Path(__file__).parents[3] / "docs/explanation/published.md"
STEP = re.compile(
    r"published (?:×(?P<said>[\d.]+)|(?P<word>more|less)) +here ×(?P<value>[\d.]+) "
    r"\((?P<low>[\d.]+)–(?P<high>[\d.]+)\) +(?P<verdict>\w[\w ]*)$",
    re.M,
)
STEPS = list(STEP.finditer(PAGE.read_text()))


def test_every_step_of_the_page_is_read() -> None:
    assert len(STEPS) == len(re.findall(r"published .*here ×", PAGE.read_text()))


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step[0][:60])
def test_a_verdict_of_the_page_is_the_commands(step: re.Match[str]) -> None:
    said = step["word"] or float(step["said"])
    shown = Ratio(*(float(step[name]) for name in ("value", "low", "high")))
    assert verdict(said, shown) == step["verdict"].strip()
