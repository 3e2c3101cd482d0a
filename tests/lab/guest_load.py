"""A guard under a load that comes and goes, and killed at random moments, on the lab `guard.toml`;
`test_run.py` runs this there."""

import os
import random
import signal
import time
from pathlib import Path

from guest import read, wait_until
from guest_guard import documents, ended, foreground, is_shut, start
from guest_rebuild import MD, recover, settled_knobs

from autotune.system.mdstat import sync_position_kib

CEILING = ("--p99-ceiling", "150ms")
CEILING_NS = 150e6
KILLS = 20
HOLDS_S = 150
FREE_AFTER_S = 10.0
ENOUGH = 500
"""Of half a minute a probe shows 600 requests, the kernel's counters 1200."""
FIRST_S = 60.0
"""A guard learns in the first half minute; a p99 is of half a minute that does not begin in it."""


def position_kib() -> int:
    found = sync_position_kib(Path("/proc/mdstat").read_text(), "md0")
    assert found is not None
    return found[0]


def speed_kib(seconds: float) -> float:
    before, started = position_kib(), time.monotonic()
    time.sleep(seconds)
    return (position_kib() - before) / (time.monotonic() - started)


def test_every_kill_leaves_the_knobs_as_found(tmp_path: Path) -> None:
    recover(slowdown=8)
    state, rng, knobs, moved = tmp_path / "state", random.Random(0), settled_knobs(), 0
    with foreground():
        for number in range(KILLS):
            child = start(state, tmp_path / "output", *CEILING)
            time.sleep(rng.uniform(0, 8))
            moved += is_shut()
            os.kill(child, signal.SIGKILL)
            assert ended(child) == -signal.SIGKILL, (tmp_path / "output").read_text()
            wait_until(lambda: settled_knobs() == knobs, 30, f"the guardian, kill {number}")
            wait_until(lambda: not list((state / "journal").glob("*")), 30, "the journal")
    print(f"{KILLS} kills, {moved} of them with the throttle shut")
    assert moved


def test_a_load_that_comes_and_goes_is_followed(tmp_path: Path) -> None:
    recover(slowdown=1)
    knobs, output = settled_knobs(), tmp_path / "output"
    free = speed_kib(5)
    child = start(tmp_path / "state", output, *CEILING)
    with foreground():
        wait_until(is_shut, 30, "the guard to work")
        time.sleep(HOLDS_S)
        held = speed_kib(10)
    gone = time.monotonic()
    wait_until(lambda: not is_shut(), FREE_AFTER_S, "the throttle to open")
    while time.monotonic() - gone < FREE_AFTER_S:
        time.sleep(0.1)
    again = speed_kib(5)
    print(f"free {free:.0f}, held {held:.0f}, free again {again:.0f} KiB/s")
    assert not is_shut()
    assert held < 0.7 * free < 0.9 * again
    with foreground():
        wait_until(is_shut, 15, "the guard to work again")
    os.kill(child, signal.SIGTERM)
    assert ended(child) == 0
    assert settled_knobs() == knobs
    windows = [each for each in documents(output) if each["kind"] == "window"]
    learnt_s = windows[0]["time_s"] + FIRST_S
    judged = [w["p99_ns"] for w in windows if w["samples"] >= ENOUGH and w["time_s"] >= learnt_s]
    print("p99 in ms:", *(round(ns / 1e6) for ns in judged))
    assert sum(ns <= CEILING_NS for ns in judged) >= 0.9 * len(judged) > 0
    assert read(MD / "sync_action") == "recover"
