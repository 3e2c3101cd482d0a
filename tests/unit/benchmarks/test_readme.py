"""The tables of `benchmarks/README.md` are what the stored results print."""

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
STORED = {
    "panel": ("benchmarks.panel", "--show"),
    "forecast": ("benchmarks.forecast", "--out", "benchmarks/forecast/results", "--print"),
    "guard": ("benchmarks.guard", "--print"),
    "design": ("benchmarks.design", "--show"),
}


@pytest.mark.parametrize("table", STORED)
def test_each_line_that_the_stored_results_print_is_in_the_readme(table: str) -> None:
    words = [sys.executable, "-m", *STORED[table]]
    shown = subprocess.run(words, cwd=TOP, check=True, capture_output=True, text=True).stdout
    readme = (TOP / "benchmarks/README.md").read_text().splitlines()
    told = {line.strip() for line in readme}
    lines = [line.strip() for line in shown.splitlines() if line.strip()]
    assert len(lines) > 3
    assert [line for line in lines if line not in told] == []
