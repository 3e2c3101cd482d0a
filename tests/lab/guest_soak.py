"""SIGKILL at random moments of short runs, in the lab `faults.toml`; `make soak` runs this there.

AUTOTUNE_KILLS says how many, a tenth of them in passes of re-tuning, and AUTOTUNE_SEED which
moments.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest
from guest import autotune, guardians, knob_files, read, running, wait_until
from guest_faults import MD, MOUNT, WORKLOAD, data, files, state
from victim import Stage, start

from autotune.knobs.profile_file import load_profile, save_profile
from autotune.system.array import find_array

__all__ = ["files", "state"]

KILLS = int(os.environ.get("AUTOTUNE_KILLS", "200"))
SEED = int(os.environ.get("AUTOTUNE_SEED", "0"))
LATEST_S = 40.0
"""A run has begun to confirm its winner by then."""


@pytest.mark.parametrize("command", ["run", "retune"])
def test_every_kill_is_followed_by_a_restore(
    command: str, state: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    workload = tmp_path / "short.toml"
    workload.write_text(WORKLOAD)
    kills, words = KILLS, ["run", "/dev/md0", "--workload", str(workload), "--scratch", str(MOUNT)]
    if command == "retune":
        config = tmp_path / "config.toml"
        config.write_text(f'[defaults]\nworkload = "{workload}"\nram_budget = "96MiB"\n')
        kills, words = max(KILLS // 10, 10), ["retune", "/dev/md0", "--config", str(config)]
        profile = load_profile(Path("examples/profile.json"))
        uuid = find_array("md0").uuid
        like = {"level": "raid5", "media": "ssd", "uuid": uuid}
        here = profile.proven_on.model_copy(update=like)
        save_profile(profile.model_copy(update={"proven_on": here}), tmp_path / "profile.json")
        done = autotune("apply", tmp_path / "profile.json", "/dev/md0", state=state)
        assert done.returncode == 0, done.stderr
    knobs, sums, rng = knob_files(), data(), random.Random(SEED)
    output = tmp_path / "output"
    changed = 0
    number = 0
    while number < kills:
        stage = Stage("confirm", lambda: None, tmp_path / "reached")
        child = start(words, stage, output)
        time.sleep(rng.uniform(0, LATEST_S))
        changed += knob_files() != knobs
        os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # A pass that came to its end in order before was not killed.
        assert code == -signal.SIGKILL or (command == "retune" and not code), output.read_text()
        number += code == -signal.SIGKILL
        wait_until(lambda: not guardians(), 60, "the guardian")
        wait_until(lambda: not running("fio"), 20, "fio to end")
        assert not list((state / "journal").glob("*")), number
        assert knob_files() == knobs, number
        assert read(MD / "sync_action") == "idle"
        assert not list(MOUNT.glob(".autotune*"))
        if number % 20 == 0:
            assert data() == sums
            with capfd.disabled():
                print(f"{number} kills, {changed} of them with changed settings", flush=True)
    assert data() == sums
    # A pass first looks whether the array is in use, and at the settings that are in force.
    assert changed > (kills / 4 if command == "run" else 0)
    with capfd.disabled():
        print(f"{command}: {kills} kills, {kills} restores; the data are unchanged")
    if command == "retune":
        autotune("restore", "/dev/md0", state=state)
