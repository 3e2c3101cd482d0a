"""Tune an array from Python, and print what was found.

Run it as root on a real array, with the Python of the installation (/opt/autotune/bin/python, or
/usr/lib/autotune/bin/python3 of the Debian package). Or run it in the lab:
    .venv/bin/autotune lab raid5-hdd -- python examples/tune.py /dev/md0
"""

import sys

from rich.console import Console

from autotune.measure.workload import load_workload
from autotune.report.live import LiveReporter
from autotune.suggested import STATE_DIR
from autotune.tuning.preparation import Options
from autotune.tuning.run import run

options = Options(
    device=sys.argv[1],
    workload=load_workload("quick"),
    trials=5,
    time_s=240,
    ram_budget=96 << 20,
)
with LiveReporter(Console(stderr=True)) as reporter:
    done = run(options, STATE_DIR, reporter)

if done.profile:
    print(f"{done.profile.evidence.gain:.2f} times as fast with {done.profile.knobs}")
else:
    print(f"Keep what you have: {done.result.reason}.")
