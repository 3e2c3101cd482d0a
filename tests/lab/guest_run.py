"""What a run does beside the search, and what becomes of a profile, on a bare RAID6 in the lab;
`test_run.py` runs this there."""

import json
import re
import signal
from pathlib import Path

import pytest
from guest import FAST, autotune, autotune_json, knob_files, running, start, wait_until

RUN = ("run", "/dev/md0", "--destructive", "/dev/md0", "--ram-budget", "96MiB")
CACHE = Path("/sys/block/md0/md/stripe_cache_size")
PROFILE = Path("examples/profile.json")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture
def fast(tmp_path: Path) -> Path:
    path = tmp_path / "fast.toml"
    path.write_text(FAST)
    return path


def test_a_profile_applies_and_can_be_undone(state: Path) -> None:
    before = knob_files()
    profile = PROFILE
    wanted = json.loads(profile.read_text())["knobs"]
    # This machine has less memory than the one it was proven on.
    assert "more than the budget" in autotune("apply", profile, "/dev/md0", state=state).stderr
    assert knob_files() == before
    done = autotune_json("apply", profile, "/dev/md0", "--force", state=state)
    assert done["after"] == wanted
    assert CACHE.read_text().strip() == str(wanted["stripe_cache_size"])
    assert knob_files() != before
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    assert knob_files() == before


def test_a_profile_with_a_value_that_does_not_fit_changes_nothing(
    state: Path, tmp_path: Path
) -> None:
    before = knob_files()
    document = json.loads(PROFILE.read_text())
    document["knobs"] = {"read_ahead_kb": 4096, "stripe_cache_size": 32769}
    path = tmp_path / "altered.json"
    path.write_text(json.dumps(document))
    # Forced, the kernel's own bounds hold all the same.
    done = autotune("apply", path, "/dev/md0", "--force", state=state)
    assert done.returncode == 2
    assert "17 to 32768" in done.stderr
    assert knob_files() == before


def test_a_strangers_profile_that_would_stop_rebuilds_changes_nothing(
    state: Path, tmp_path: Path
) -> None:
    before = knob_files()
    document = json.loads(PROFILE.read_text())
    document["knobs"] = {"sync_speed_min": 1, "sync_speed_max": 1}
    del document["evidence"]["confirmed"]
    path = tmp_path / "strange.json"
    path.write_text(json.dumps(document))
    done = autotune("apply", path, "/dev/md0", state=state)
    assert done.returncode == 1
    assert "a rebuild" in done.stderr
    assert knob_files() == before


def test_a_run_excludes_another_and_leaves_nothing_behind_when_ended_in_its_middle(
    state: Path, fast: Path
) -> None:
    """By Ctrl-C; by SIGKILL, guest_faults.py and guest_soak.py end runs."""
    before = knob_files()
    process = start(*RUN, "--workload", fast, "--strategy", "random", state=state)
    # The warm-up comes first, which the first check of an array can make long.
    wait_until(lambda: knob_files() != before and bool(running("fio")), 300, "a check with fio")
    other = autotune(*RUN, "--workload", fast, state=state.with_name("other"))
    assert other.returncode == 1
    named = re.search(r"process (\d+)", other.stderr)
    assert named, other.stderr
    assert f"PPid:\t{process.pid}\n" in Path(f"/proc/{named[1]}/status").read_text()
    # Let it get past the baseline, where only the check changes a file.

    def changed() -> bool:
        assert process.poll() is None, process.communicate()
        return CACHE.read_text().strip() != "256"

    wait_until(changed, 300, "a change of the cache")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Stopped by Ctrl-C" in errors
    assert knob_files() == before
    assert not running("fio")
    assert not list((state / "journal").glob("*"))


def test_a_knob_that_somebody_turns_ends_the_run_and_stays_theirs(state: Path, fast: Path) -> None:
    before = knob_files()
    process = start(*RUN, "--workload", fast, state=state)
    wait_until(lambda: bool(running("fio")), 300, "the baseline")
    ahead = Path("/sys/block/md0/queue/read_ahead_kb")
    ahead.write_text("1000")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "somebody else set read_ahead_kb to 1000" in errors
    after = knob_files()
    assert after.pop(str(ahead)) == "1000"
    ahead.write_text(before.pop(str(ahead)))
    assert after == before


def test_a_dry_run_shows_the_plan_and_changes_nothing(state: Path) -> None:
    before = knob_files()
    plan = autotune_json(*RUN, "--dry-run", state=state)
    assert knob_files() == before
    assert set(plan["phases"]) == {"idle", "read", "write", "mix", "resync"}
    assert "--readonly" in plan["phases"]["read"]["fio"]
    assert plan["knobs"]["stripe_cache_size"]["now"] == 256
    assert 0 < plan["expected"]["written_bytes_per_member"] < plan["expected"]["written_bytes"]
    bare = autotune_json("run", "/dev/md0", "--dry-run", state=state)
    assert bare["left_out"] == ["write", "mix"]
    assert bare["expected"]["written_bytes"] == 0
    # What is not measured, and what to do, is known from the doctor on.
    (listed,) = autotune_json("run", "--all", "--dry-run", state=state)
    assert listed["device"] == "/dev/md0"
    doctor = autotune_json("doctor", "/dev/md0", state=state)["runs"]["/dev/md0"]
    assert doctor["not_measured"] == bare["not_measured"] == listed["not_measured"]
    assert "--destructive /dev/md0" in doctor["not_measured"]
    assert not doctor["careful"]
    assert not any("rw=write" in word for p in bare["phases"].values() for word in p["fio"])
