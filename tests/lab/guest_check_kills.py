"""SIGKILL at random moments of checks, in check.toml; `make check-kills` runs this there.

AUTOTUNE_KILLS says how many, every second one of the guardian too, and AUTOTUNE_SEED which moments.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from checked import (
    ended,
    newest,
    plant,
    position,
    settings,
    size,
    start,
    wait_for,
)
from guest import autotune_json, guardians, signal_guardians, wait_until

KILLS = int(os.environ.get("AUTOTUNE_KILLS", "4"))
SEED = int(os.environ.get("AUTOTUNE_SEED", "0"))
LATEST_S = 8.0
PLANTS = 24
"""Spread over the array, each is 8 sectors: what was skipped would be missed."""


def test_no_kill_leaves_a_limit_or_skips_a_part(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    state, output, rng = tmp_path / "state", tmp_path / "output", random.Random(SEED)
    for number in range(PLANTS):
        plant("vdb", size() * number // PLANTS // 8 * 8)
    found, reached, mid, restarts = settings(), 0, 0, 0
    for number in range(KILLS):
        left = list((state / "journal").glob("*"))
        output.unlink(missing_ok=True)
        child = start(state, output)
        if left:
            wait_for("is put back", output)
        if not number:
            wait_until(lambda: settings() != found, 60, "the check to change a setting")
        time.sleep(rng.uniform(0, LATEST_S))
        mid += settings() != found
        if number % 2:
            signal_guardians()
        os.kill(child, signal.SIGKILL)
        code = ended(child)
        assert code in (0, -signal.SIGKILL), output.read_text()
        if number % 2 == 0:
            wait_until(lambda: not guardians(), 60, "the guardian")
            assert settings() == found, number
            assert not list((state / "journal").glob("*"))
        if not code:
            # It came to its end in time.
            assert_all_was_found(state)
            reached, restarts = 0, restarts + 1
            continue
        assert position(state) >= reached
        reached = position(state)
    said = autotune_json("check", "/dev/md0", state=state)
    assert said["complete"]
    assert_all_was_found(state)
    assert settings() == found
    assert not list((state / "journal").glob("*"))
    assert mid
    with capfd.disabled():
        print(
            f"{KILLS} kills, {mid} of them with changed settings: all are as found, each of "
            f"{PLANTS} stripes that differ was found; the last check had {said['pieces']} parts, "
            f"{restarts} came to their end before"
        )


def assert_all_was_found(state: Path) -> None:
    """A part that was cut off may be counted twice, but none is left out."""
    record = newest(state)
    assert record.ended is not None
    assert record.mismatches >= 8 * PLANTS
    at = 0
    for part in record.parts:
        assert part.start == at
        at = part.end
    assert at == size()
