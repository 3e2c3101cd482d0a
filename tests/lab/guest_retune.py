"""Passes of re-tuning on an array whose disks become slower and faster again, on raid6-hdd;
`test_run.py` runs this there."""

import time
from pathlib import Path
from typing import Any

from guest import WRITE, autotune, autotune_json, read

from autotune.knobs.profile_file import load_profile, save_profile

CONTROLS = sorted(Path("/run/lab/disks").glob("*/slowdown"))
RAW = ("/dev/md0", "--destructive", "/dev/md0")
STRIPES = Path("/sys/block/md0/md/stripe_cache_size")
# Of disks that take twice as long, a few seconds are few of their bursts.
LONGER = WRITE.replace("max_seconds = 6", "max_seconds = 12")


def slow_down(factor: float) -> None:
    """Make every disk take so many times as long, as a control file of the lab says."""
    for control in CONTROLS:
        control.write_text(f"{factor}\n")
    time.sleep(0.5)


def one_pass(state: Path, config: Path) -> Any:
    (report,) = autotune_json("retune", *RAW, "--config", config, state=state)
    print(report["outcome"], report["text"], report["pass"])
    return report


def test_a_change_of_the_disks_is_seen_and_answered_once(tmp_path: Path) -> None:
    workload, config, state = tmp_path / "write.toml", tmp_path / "config.toml", tmp_path / "state"
    workload.write_text(LONGER)
    config.write_text(f'[defaults]\nworkload = "{workload}"\ntrials = 8\nram_budget = "96MiB"\n')
    assert autotune("config", "check", config, state=state).returncode == 0
    # A profile from a time when there was less memory to give.
    knobs = {"knobs": {"stripe_cache_size": 512}, "before": {"stripe_cache_size": 256}}
    profile = load_profile(Path("examples/profile.json")).model_copy(update=knobs)
    save_profile(profile, tmp_path / "profile.json")
    done = autotune("apply", tmp_path / "profile.json", "/dev/md0", state=state)
    assert done.returncode == 0, done.stderr
    first = int(read(STRIPES))
    assert first == 512
    # The first look and the next: nothing moved.
    assert one_pass(state, config)["outcome"] == "unchanged"
    assert one_pass(state, config)["outcome"] == "unchanged"
    assert int(read(STRIPES)) == first
    slow_down(2.0)
    slowed = one_pass(state, config)
    assert slowed["outcome"] == "adopted"
    assert any("write.throughput is at 0." in reason for reason in slowed["pass"]["reasons"])
    ratio, low, _ = slowed["pass"]["better"]
    assert ratio > 1.03
    assert low > 1.0
    better = int(read(STRIPES))
    assert better > first
    assert autotune("status", state=state).returncode == 0
    assert one_pass(state, config)["outcome"] == "unchanged"
    slow_down(1.0)
    faster = one_pass(state, config)
    assert any("write.throughput is at 1." in r or "at 2." in r for r in faster["pass"]["reasons"])
    assert one_pass(state, config)["outcome"] == "unchanged"
    shown = autotune("retune", "/dev/md0", "--log", state=state)
    print(shown.stdout)
    assert "6 passes" in shown.stdout
    autotune("restore", "/dev/md0", state=state)
    assert int(read(STRIPES)) == 256
