"""python -m benchmarks.time_left: the time left that a run tells people, beside what it took.

Each run goes on in the lab, on a terminal of 80 columns. What that says is noted each minute; a
run's end is when it says nothing of the time left any more.
"""

import argparse
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from tempfile import TemporaryDirectory

import pyte
from rich.console import Console
from rich.table import Table

from autotune.quantities import show_seconds

AUTOTUNE = Path(sys.executable).with_name("autotune")
WIDTH, HEIGHT = 80, 24
EVERY_S = 60.0
NEAR, EDGE = 0.3, 0.1
FIRST_PART = 1 / 3
SAYS = re.compile(r"(?:about )?((?:\d+ (?:(?:h|min|s) )?)+)(?:to ((?:\d+ (?:h|min|s) )+))?left")
DOES = re.compile(r"Trial (\d+) \(([^)…\n]*)")
UNIT_S = {"h": 3600, "min": 60, "s": 1}
RAW = ("--destructive", "/dev/md0")
DEMO = "--workload quick --p99-ceiling resync=600ms --trials 12 --time 10min --ram-budget 128MiB"
RUNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "demo": ("raid6-hdd", (*RAW, *DEMO.split())),
    "default": ("raid5-ssd", RAW),
    "short": ("raid5-ssd", (*RAW, "--time", "10min")),
}


@dataclass(frozen=True)
class Seen:
    """Seconds since the run said something first, what it said is left at least and at most, and
    what it did then. `shown` is what was left, as it said that."""

    at_s: float
    least_s: float
    most_s: float
    doing: str
    shown: str = ""

    @property
    def middle_s(self) -> float:
        return (self.least_s + self.most_s) / 2

    def has(self, left_s: float) -> bool:
        """Whether what was left lay in what was said: within 30 % where that was one time, and
        within 10 % where it was two."""
        if self.least_s == self.most_s:
            return self.is_near(left_s)
        return (1 - EDGE) * self.least_s <= left_s <= (1 + EDGE) * self.most_s

    def is_near(self, left_s: float) -> bool:
        """Whether the middle of it was within 30 %."""
        return abs(self.middle_s / left_s - 1) <= NEAR


def said(lines: Sequence[str]) -> tuple[float, float, str] | None:
    """The seconds that a screen says are left, at least and at most, and its words for them."""
    found = SAYS.search("\n".join(lines))
    if found is None:
        return None
    most = (found[2] or found[1]).split()
    least = found[1].split()
    # In "8 to 15 min" both are minutes.
    least = least if len(least) % 2 == 0 else [*least, most[-1]]
    return _seconds(least), _seconds(most), found[0].removesuffix("left").strip()


def _seconds(words: Sequence[str]) -> float:
    return float(
        sum(int(n) * UNIT_S[unit] for n, unit in zip(words[::2], words[1::2], strict=True))
    )


def doing(lines: Sequence[str]) -> str:
    """What a screen says that is measured."""
    found = DOES.search("\n".join(lines))
    return f"{found[1]}, {found[2]}" if found else ""


def watch(scenario: str, words: Sequence[str], out: Path) -> tuple[list[Seen], float]:
    """Everything that a run says of its time left, and when it was over, in seconds since it said
    something first. Its state is kept in `out`."""
    above, below = pty.openpty()
    ioctl(below, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    env = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    screen = pyte.Screen(WIDTH, HEIGHT)
    stream = pyte.ByteStream(screen)
    seen: list[Seen] = []
    began, last, shows = 0.0, 0.0, False
    run = ("autotune", "run", "/dev/md0", *words, "--state-dir", str(out))
    process = subprocess.Popen(
        [AUTOTUNE, "lab", scenario, "--out", str(out), "--", *run],
        stdin=below, stdout=below, stderr=below, env={**env, "TERM": "xterm-256color"},
    )  # fmt: skip
    os.close(below)
    while True:
        if select.select([above], [], [], 1.0)[0]:
            try:
                got = os.read(above, 1 << 16)
            except OSError:
                break
            stream.feed(got)
        now = time.monotonic()
        left = said(screen.display)
        if shows or left is not None:
            last = now
        shows = left is not None
        if left is not None:
            began = began or now
            least_s, most_s, words = left
            seen.append(Seen(now - began, least_s, most_s, doing(screen.display), words))
    os.close(above)
    if process.wait():
        sys.exit("\n".join(line for line in screen.display if line.strip()))
    return seen, last - began


def each_minute(seen: Sequence[Seen], end_s: float) -> list[Seen]:
    """The first of each minute."""
    found, due = [], EVERY_S
    for each in seen:
        if each.at_s >= due and each.at_s < end_s:
            found.append(each)
            due += EVERY_S
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.time_left")
    parser.add_argument("runs", nargs="*", help=f"of {', '.join(RUNS)}; all, if none is named")
    parser.add_argument("--out", type=Path, help="folder for what the runs stored")
    chosen = parser.parse_args()
    count = true = near = 0
    for name in chosen.runs or list(RUNS):
        with TemporaryDirectory() as folder:
            out = (chosen.out or Path(folder)) / name
            out.mkdir(parents=True, exist_ok=True)
            seen, end_s = watch(*RUNS[name], out)
        title = f"{name}: {show_seconds(end_s)}"
        columns = ("minute", "trial", "says left", "was left", "true", "middle")
        table = Table(*columns, box=None, title=title)
        for each in each_minute(seen, end_s):
            left_s = end_s - each.at_s
            later = each.at_s > FIRST_PART * end_s
            count += later
            true += later and each.has(left_s)
            near += later and each.is_near(left_s)
            table.add_row(
                f"{each.at_s / 60:.0f}",
                each.doing,
                each.shown,
                show_seconds(left_s),
                ("yes" if each.has(left_s) else "no") if later else "first third",
                f"{each.middle_s / left_s:.2f}",
            )
        Console(width=WIDTH).print(table)
    print(
        f"After the first third what was left lay in what was said {true} times of {count}; "
        f"the middle of that was within {NEAR:.0%} {near} times."
    )


if __name__ == "__main__":
    main()
