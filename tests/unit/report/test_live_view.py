"""A run's progress on terminals of several sizes: nothing wraps, and nothing is left over."""

import io
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import synthetic_run
from rich.console import Console
from terminal import on_a_terminal

from autotune.background import write_line
from autotune.problem.figure import Estimate
from autotune.problem.setting import show_setting
from autotune.problem.trial import Status
from autotune.report.display import WholeItems
from autotune.report.live import LiveReporter
from autotune.report.live_view import Shown, View, show_about, show_left, table
from autotune.report.spark import spark, spark_under

SIZES = [(80, 24), (40, 15), (200, 60)]
RUN = """
import sys
import time
import synthetic_run
from autotune.cli.terminal import console
from autotune.problem.figure import Estimate
from autotune.problem.trial import Status
from autotune.report import display, live

display.PERIOD_S = 0.0

def settle():
    while not reporter._beside.idle:
        time.sleep(0.001)

with live.LiveReporter(console(stderr=True), "Ctrl-C puts the original settings back.") as reporter:
    reporter.step("Measuring the array as it is")
    for number in range(1, 21):
        if number == 3:
            reporter.ceilings({"write.p99": 3e8, "resync.p99": 55e6})
        role = "baseline" if number < 3 else "search"
        changes = {} if number < 3 else {"stripe_cache_size": 256 + number, "sync_speed_max": 9999}
        figures = synthetic_run.figures(100 + number, 30, 100, 40 + number)
        for share in (0.1, 0.6, 1.0):
            what = f"Trial {number} ({role}): a phase with a name that is longer than most"
            reporter.progress(what, share, 4000 - number)
            settle()
        if number == 7:
            reporter.notice("Something that must be said, in a sentence longer than a line.")
        status = Status.ABORTED if number == 9 else Status.COMPLETE
        record = synthetic_run.trial(number, role, changes, figures, status=status)
        gain = Estimate(1 + number / 50, 0.02) if number != 9 else None
        reporter.trial(record, gain)
        settle()
        reporter.progress("between", 0.0, 100.0, 500.0)
        settle()
"""


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_screen_shows_a_run_and_keeps_its_trials(width: int, height: int) -> None:
    screen, _, before = on_a_terminal(RUN, width, height)
    lines = before.splitlines()
    assert any(line.startswith("best so far ×1.26 (1.") for line in lines), before
    assert sum("overall" in line for line in lines) == 2
    assert any("resync.p99" in line and "▁" in line for line in lines)
    assert any("2 to 8 min left" in line for line in lines)
    assert any(line.startswith("ceilings: resync.p99 55.0 ms") for line in lines), before
    # It has a p99 of 56 ms.
    assert any(
        line.split()[0] == "16" and "over a ceiling" in line for line in lines if line.strip()
    )
    after = "\n".join(screen.display)
    for gone in ("Ctrl-C", "best so far", "between", "▁", "ceilings:"):
        assert gone not in after
    rows = [line.split()[0] for line in screen.display if line.strip()[:1].isdigit()]
    assert rows[-5:] == ["16", "17", "18", "19", "20"]


def test_a_trial_that_ended_without_a_reason_shows_its_setting() -> None:
    baseline = synthetic_run.trial(1, "baseline", {}, synthetic_run.figures(100, 30, 100, 40))
    changes = {"stripe_cache_size": 512}
    cut = synthetic_run.trial(2, "search", changes, {}, status=Status.ABORTED)
    said = []
    for reason in ("", "too slow"):
        trials = [Shown(baseline, Estimate(1.0, 0.02)), Shown(replace(cut, reason=reason), None)]
        out = io.StringIO()
        Console(file=out, width=80).print(
            table(trials, baseline.requested, False, show_setting, {})
        )
        said.append(out.getvalue().splitlines()[-1].split(maxsplit=4)[4].rstrip())
    assert said == ["stripe_cache_size 512", "too slow: stripe_cache_size 512"]


def test_where_a_line_is_cut_off_it_still_tells_trials_apart() -> None:
    figures = synthetic_run.figures(100, 30, 100, 40)
    baseline = synthetic_run.trial(1, "baseline", {}, figures)
    trials = [Shown(baseline, Estimate(1.0, 0.02))]
    for number, speed in enumerate((5000, 50000, 90000), 2):
        changes = {"stripe_cache_size": 4096, "sync_speed_min": 2000, "sync_speed_max": speed}
        record = synthetic_run.trial(number, "search", changes, figures)
        trials.append(Shown(record, Estimate(1.1, 0.02)))
    out = io.StringIO()
    Console(file=out, width=80).print(table(trials, baseline.requested, False, show_setting, {}))
    said = [line.partition(" ms")[2].split()[:2] for line in out.getvalue().splitlines()[2:]]
    assert said == [["sync_speed_max", f"{speed},"] for speed in (5000, 50000, 90000)]


def test_no_color_sends_no_colours() -> None:
    _, sent, _ = on_a_terminal(RUN, 80, 24, NO_COLOR="1")
    assert b"\x1b[1m" not in sent
    assert b"\x1b[3" not in sent
    assert b"\x1b[1m" in on_a_terminal(RUN, 80, 24)[1]


@pytest.mark.parametrize(("width", "height"), [*SIZES, (20, 9)])
@pytest.mark.parametrize("trials", [0, 1, 40])
def test_every_state_fits_the_terminal(width: int, height: int, trials: int) -> None:
    view = View("Ctrl-C puts the original settings back.", "x" * 300, 0.5, 3600.0)
    view.limits_ns = {"resync.p99": 6e8, "z" * 300: 1e6}
    for number in range(1, trials + 1):
        figures = synthetic_run.figures(100, 30, 100, 40) if number % 3 else {}
        status = Status.COMPLETE if number % 3 else Status.INFEASIBLE
        changes = {"stripe_cache_size": 4096, "scheduler": "y" * 300}
        record = synthetic_run.trial(number, "confirm-winner", changes, figures, status=status)
        gain = Estimate(1.5, 0.4) if number % 3 else None
        view.trials.append(Shown(record, gain))
    console = Console(width=width, height=height, force_terminal=True)
    lines = console.render_lines(view, pad=False)
    # The cursor stands below.
    assert len(lines) < height
    assert all(sum(segment.cell_length for segment in line) <= width for line in lines)
    # A terminal shows "^C" behind it, which must not begin a line of its own.
    assert len("".join(segment.text for segment in lines[-1]).rstrip()) <= width - 2


def test_a_spark_has_a_character_for_each_value() -> None:
    assert spark([1.0, None, 2.0, 3.0]) == "▁ ▅█"
    assert spark([1.0, 3.0], "ascii") == "_@"
    assert spark([5.0, 5.0]) == "▁▁"
    assert spark([]) == ""


def test_a_spark_under_a_ceiling_shows_what_is_above_it() -> None:
    assert spark_under([0.0, 40.0, None, 80.0, 80.1, 900.0], 80.0) == "▁▃ ▆██"
    assert spark_under([80.0, 81.0], 80.0, "ascii") == "*@"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (4.4, "4 s"),
        (97, "1 min 40 s"),
        (299, "5 min"),
        (813, "14 min"),
        (3599, "1 h 00 min"),
        (9000, "2 h 30 min"),
    ],
)
def test_an_estimate_has_few_digits(seconds: float, said: str) -> None:
    assert show_about(seconds) == said


@pytest.mark.parametrize(
    ("least_s", "most_s", "said"),
    [
        (480, None, "about 8 min"),
        (480, 600, "about 9 min"),
        (480, 900, "8 to 15 min"),
        (50, 100, "50 s to 1 min 40 s"),
        (50, 900, "50 s to 15 min"),
        (70, 420, "1 to 7 min"),
        (200, 540, "3 to 9 min"),
        (1800, 7200, "30 min to 2 h 00 min"),
        (0, 6, "0 s to 6 s"),
        (0, 0, "about 0 s"),
        (16, 22, "about 20 s"),
    ],
)
def test_the_least_and_the_most_are_told_where_they_differ(
    least_s: float, most_s: float | None, said: str
) -> None:
    assert show_left(least_s, most_s) == said


def test_what_is_the_same_is_said_once() -> None:
    view = View(trials=[Shown(synthetic_run.baseline(1), Estimate(1.0, 0.01))])
    console = Console(width=80, height=24, force_terminal=True)
    lines = ["".join(s.text for s in line).rstrip() for line in console.render_lines(view)]
    assert "overall     ▁  ×1.00" in lines
    assert "resync.p99  ▁  40.0 ms" in lines


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"write.p99": 3e8, "resync.p99": 6e8}, "ceilings: resync.p99 600 ms, write.p99 300 ms"),
        ({"resync.p99": 6e8}, "ceiling: resync.p99 600 ms"),
        ({}, ""),
    ],
)
def test_the_ceilings_are_shown(limits: dict[str, float], said: str) -> None:
    trials = [Shown(synthetic_run.baseline(1), Estimate(1.0, 0.01))]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(View(trials=trials, limits_ns=limits))
    shown = [line.rstrip() for line in console.export_text().splitlines()]
    assert [line for line in shown if line.startswith("ceiling")] == ([said] if said else [])


def test_a_trial_over_a_ceiling_is_not_the_best() -> None:
    """The first trials end before the ceilings are known, and so do those of a resumed run."""
    trials = [Shown(synthetic_run.baseline(1), Estimate(1.0, 0.01))]
    for number, p99_ms in ((2, 90), (3, 30)):
        changes = {"stripe_cache_size": 1024 * number}
        figures = synthetic_run.figures(100, 30, 100, p99_ms)
        record = synthetic_run.trial(number, "search", changes, figures)
        trials.append(Shown(record, Estimate(4.0 - number, 0.01)))
    for limits, best in (({}, "best so far ×2.00"), ({"resync.p99": 8e7}, "best so far: the orig")):
        console = Console(width=80, record=True, file=io.StringIO())
        console.print(View(trials=trials, limits_ns=limits))
        assert best in console.export_text()


def test_the_original_settings_are_not_called_over_a_ceiling() -> None:
    """It comes from what they showed, so that says nothing."""
    figures = synthetic_run.figures(100, 30, 100, 90)
    tried = synthetic_run.trial(2, "search", {"stripe_cache_size": 1024}, figures)
    trials = [Shown(synthetic_run.baseline(1), Estimate(1.0, 0.01)), Shown(tried, None)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(View(trials=trials, limits_ns={"resync.p99": 3e7}))
    (over,) = [line for line in console.export_text().splitlines() if "over a ceiling" in line]
    assert over.split()[0] == "2"


def test_a_drift_of_the_array_is_not_the_best() -> None:
    """What the original settings gain meanwhile, another setting has not brought."""
    gains = (("baseline", 1.0), ("baseline", 1.0), ("search", 1.4), ("baseline", 1.4))
    trials = []
    for number, (role, gain) in enumerate(gains, 1):
        changes = {"stripe_cache_size": 1024} if role == "search" else {}
        record = synthetic_run.trial(number, role, changes, synthetic_run.figures(100, 30, 100, 30))
        trials.append(Shown(record, Estimate(gain, 0.02)))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(View(trials=trials))
    found = re.search(r"best so far ×(\S+) \((\S+) to (\S+)\)", console.export_text())
    assert found
    best, low, high = map(float, found.groups())
    assert low < 1 < best < 1.3 < high


def test_what_goes_to_a_file_meanwhile_goes_there_as_it_is(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """As `guard --json` to a pipe, from a terminal."""
    terminal = Console(file=io.StringIO(), force_terminal=True, width=80)
    with LiveReporter(terminal) as reporter:
        reporter.step("Measuring")
        write_line('{"a": 1}')
    assert capfd.readouterr().out == '{"a": 1}\n'


def test_off_a_terminal_only_notices_are_said() -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, check=True, env=env
    )
    notice = "Something that must be said, in a sentence longer than a line.\n"
    assert done.stderr == notice
    assert done.stdout == ""


def test_what_all_is_compared_with_has_its_name() -> None:
    figures = synthetic_run.figures(100, 30, 100, 40)
    baseline = Shown(synthetic_run.trial(1, "baseline", {}, figures), Estimate(1.0, 0.1))
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(View(trials=[baseline]))
    console.print(View(trials=[baseline], compared_with="mdadm's default"))
    shown = console.export_text()
    assert "best so far: the original settings" in shown
    assert "best so far: mdadm's default" in shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (80, "best ×1.4: stripe_cache_size 4096, sync_speed_min 200000"),
        (55, "best ×1.4: stripe_cache_size 4096, …"),
        (20, "best ×1.4: stripe_c…"),
    ],
)
def test_no_value_is_cut_inside(width: int, shown: str) -> None:
    line = "best ×1.4: stripe_cache_size 4096, sync_speed_min 200000"
    out = io.StringIO()
    Console(file=out, width=width).print(WholeItems(line))
    assert out.getvalue().rstrip() == shown
