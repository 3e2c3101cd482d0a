"""A guard's progress on terminals of several sizes: nothing wraps, and nothing is left over."""

import dataclasses
import math
import os
import subprocess
import sys

import pytest
from rich.console import Console
from some_windows import FIRST, MS, some_windows
from terminal import on_a_terminal

from autotune.report.guard_view import CHECK_ENDING, GuardView

SIZES = [(80, 24), (40, 15), (200, 60)]
GUARD = """
import sys
import time
from some_windows import MS, some_windows
from autotune.cli.terminal import console, notice
from autotune.background import write_line
from autotune.report import display, guard_view

display.PERIOD_S = 0.0
with guard_view.GuardDisplay(console(stderr=True), "/dev/md0", 80 * MS) as shown:
    for sync in (1, 2):
        for number, window in enumerate(some_windows(60)):
            shown.window(window)
            while not shown._beside.idle:
                time.sleep(0.001)
            if number == 30:
                notice("The recovery is halfway, as somebody has to be told in a long sentence.")
        shown.over()
        with shown.away():
            write_line(f"Guarded sync {sync}.")
"""


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_screen_shows_a_guard_and_keeps_what_is_said(width: int, height: int) -> None:
    screen, _, before = on_a_terminal(GUARD, width, height)
    lines = {line[:4].strip(): line.rstrip() for line in before.splitlines() if line.strip()}
    assert "█" in lines["p99"]
    assert lines["p99"].partition(" ms, ceiling ")[2].startswith("80.0 ms")
    assert "5.4 MB/s" in lines["sync"]
    assert "9 min 53 s" in lines["left"]
    assert ":" in lines["end"]
    after = [line.rstrip() for line in screen.display if line.strip()]
    assert [line for line in after if line.startswith("Guarded")] == [
        "Guarded sync 1.",
        "Guarded sync 2.",
    ]
    assert sum("halfway" in line for line in after) == 2
    for gone in ("Ctrl-C", "█", "MB/s", "left"):
        assert gone not in "\n".join(after)


def test_no_color_sends_no_colours_and_still_shows_what_is_above() -> None:
    _, sent, before = on_a_terminal(GUARD, 80, 24, NO_COLOR="1")
    assert b"\x1b[1m" not in sent
    assert b"\x1b[3" not in sent
    assert "█" in before
    assert b"\x1b[31m" in on_a_terminal(GUARD, 80, 24)[1]


def lines_of(view: GuardView, width: int, height: int = 24) -> list[str]:
    console = Console(width=width, height=height, force_terminal=True)
    shown = console.render_lines(view, pad=False)
    assert len(shown) < height
    assert all(sum(segment.cell_length for segment in line) <= width for line in shown)
    return ["".join(segment.text for segment in line) for line in shown]


@pytest.mark.parametrize(("width", "height"), [*SIZES, (20, 9)])
def test_every_state_fits_the_terminal(width: int, height: int) -> None:
    states = (
        {},
        {"source": "none", "p99_ns": None, "foreground_iops": None},
        {"p99_ns": None, "left_s": None},
        {"left_low_s": None},
        {"out_of_reach": True, "finish_s": FIRST.time_s + 1e6, "left_s": 1e6},
        {"finish_s": FIRST.time_s, "impossible": True, "p99_ns": 1e11},
    )
    waiting = GuardView("/dev/md127", 80 * MS, CHECK_ENDING, waits=("w" * 300, 0.5))
    assert len(lines_of(waiting, width, height)) == 3
    for count in (0, 1, 300):
        for state in states:
            view = GuardView("/dev/md127", 80 * MS)
            view.windows.extend(some_windows(count, **state))
            assert bool(lines_of(view, width, height)) == (count > 0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"needed_kib": 3000.0, "left_high_s": 100.0}, "can be met at 3.1 MB/s"),
        ({"needed_kib": 3000.0, "left_high_s": 9e3}, "at risk, 3.1 MB/s needed"),
        ({"needed_kib": None}, "not known yet"),
        ({"needed_kib": None, "impossible": True}, "cannot be met even at full speed"),
        ({"needed_kib": 9e4, "impossible": True}, "cannot be met under the ceiling"),
    ],
)
def test_a_date_is_shown_with_how_sure_it_is(changes: dict[str, object], said: str) -> None:
    view = GuardView("/dev/md0", 80 * MS)
    view.windows.extend(some_windows(1, finish_s=FIRST.time_s + 3600, **changes))
    (deadline,) = (line for line in lines_of(view, 80) if line.startswith("deadline"))
    assert said in deadline


@pytest.mark.parametrize(
    ("width", "first"), [(80, "Check of /dev/md0 "), (40, "/dev/md0: 10.0% is checked")]
)
def test_a_check_says_that_it_is_one_and_what_it_waits_for(width: int, first: str) -> None:
    view = GuardView("/dev/md0", 80 * MS, CHECK_ENDING)
    view.windows.extend(some_windows(1, action="check"))
    lines = lines_of(view, width)
    assert lines[0].startswith(first)
    assert lines[1].startswith("p99 ")
    assert lines[-1].startswith("Ctrl-C stops it")
    view.waits = ("a disk is at 57 °C", 0.1)
    lines = lines_of(view, width)
    assert lines[0].startswith(first)
    assert lines[1].strip() == "waiting: a disk is at 57 °C"


@pytest.mark.parametrize("width", [80, 40])
def test_what_is_sure_to_a_second_has_no_interval(width: int) -> None:
    view = GuardView("/dev/md0", 80 * MS)
    view.windows.extend(some_windows(1, left_s=0.2, left_low_s=0.1, left_high_s=0.3))
    lines = [line.split() for line in lines_of(view, width)]
    (left,), (end,) = ([line for line in lines if line[0] == name] for name in ("left", "end"))
    assert left == ["left", "0", "s"]
    assert len(end) == 2
    assert not [line for line in lines if line[0] == "from"]


def test_a_guard_that_waits_says_so() -> None:
    view = GuardView("/dev/md0", 80 * MS, idle="No sync runs.")
    assert [line.strip() for line in lines_of(view, 80)] == ["No sync runs."]
    view.windows.extend(some_windows(1))
    assert "No sync runs." not in "".join(lines_of(view, 80))


WAITING = """
import os
from some_windows import MS, some_windows
from autotune.cli.guarding import on_terminal
from autotune.report import display

display.PERIOD_S = 0.0
with on_terminal("/dev/md0", 80 * MS, waits=True) as shown:
    for window in some_windows(3):
        shown.window(window)
    shown.over()
    with shown.away():
        pass
    shown.draw_at_rest()
    shown._settle()
    os._exit(0)
"""


@pytest.mark.parametrize("width", [80, 40])
def test_a_guard_that_waits_says_so_on_a_terminal_too(width: int) -> None:
    screen, sent, _ = on_a_terminal(WAITING, width, 15)
    lines = [line.strip() for line in screen.display if line.strip()]
    assert len(lines) == 1, lines
    assert lines[0].startswith("No sync of /dev/md0 runs")
    # At its start too, before it is taken away for the first time.
    assert b"No sync of" in sent.partition(b"\x1b[?25h")[0]


def test_without_a_ceiling_none_is_named() -> None:
    view = GuardView("/dev/md0", math.inf)
    view.windows.extend(some_windows(10))
    (p99,) = (line for line in lines_of(view, 80) if line.startswith("p99"))
    assert "85.0 ms, 41 requests/s" in p99
    assert "ceiling" not in p99


def test_off_a_terminal_only_notices_and_ends_are_said() -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", GUARD], capture_output=True, text=True, check=True, env=env
    )
    said = "autotune: The recovery is halfway, as somebody has to be told in a long sentence.\n"
    assert done.stderr == 2 * said
    assert done.stdout == "Guarded sync 1.\nGuarded sync 2.\n"


def test_whose_requests_a_p99_is_of_is_said() -> None:
    view = GuardView("/dev/md0", 1e8)
    view.windows.extend(dataclasses.replace(each, source="probe") for each in some_windows(10))
    (p99,) = (line for line in lines_of(view, 80) if line.startswith("p99"))
    assert p99.endswith("85.0 ms, ceiling 100 ms, 41 requests/s, of small test reads")
