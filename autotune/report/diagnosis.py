"""Whether a run can start, for people and for programs."""

from typing import Any

from rich.console import Console
from rich.text import Text

from autotune.advice.finding import Advice
from autotune.report.advice import advice_line
from autotune.report.lines import print_indented
from autotune.report.run_cost import run_document, summary
from autotune.tuning.diagnosis import Diagnosis


def print_diagnosis(console: Console, diagnosis: Diagnosis, advice: Advice) -> None:
    """What prevents a run, what to know, what could be better, and what a run would be like."""
    can = "can start" if diagnosis.run else "cannot start"
    console.print(Text.assemble((diagnosis.device, "bold"), f": a run {can}."))
    for finding in diagnosis.findings:
        what = "prevents it" if finding.severity == "refuse" else "note"
        print_indented(console, f"{what}: {finding.message}")
    if line := advice_line(advice):
        print_indented(console, line)
    if diagnosis.run is None:
        return
    print_indented(console, "A run without other options would be like this:")
    for line in summary(diagnosis.run):
        print_indented(console, line, 4)


def diagnosis_document(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """The findings."""
    return [vars(finding) for finding in diagnosis.findings]


def expected_document(diagnosis: Diagnosis) -> dict[str, Any] | None:
    """What a run would be like; None if there can be none."""
    return run_document(diagnosis.run) if diagnosis.run else None
