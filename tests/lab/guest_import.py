"""A profile of a larger machine on a smaller one, fewer.toml; `test_run.py` runs this there, in
this order."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from guest import autotune, autotune_json, knob_files, read, start, wait_until

from autotune.errors import AutotuneError
from autotune.measure import settling
from autotune.measure.member_speed import member_kib_s
from autotune.store.database import Store
from autotune.system.array import find_array
from autotune.system.memory import total_bytes
from autotune.tuning.trials import Trials

EXAMPLE = Path("examples/profile.json")
MD = Path("/sys/block/md0/md")
BUDGET_SHARE = 0.05
# Too few requests for a p99, so that no ceiling decides.
WORKLOAD = """
name = "check"
[[phases]]
name = "resync"
weight = 1
check = true
probe = { rate_iops = 20 }
min_seconds = 5
max_seconds = 8
"""


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def rate() -> int:
    found = member_kib_s(find_array("/dev/md0"))
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def sooner() -> Iterator[None]:
    with (
        mock.patch.object(settling, "CHECK_RAMP_S", 0.5),
        mock.patch.object(settling, "SETTLE_S", 0.5),
        mock.patch("autotune.tuning.tune.BASELINE_TRIALS", 1),
        mock.patch.object(Trials, "warm_up"),
    ):
        yield


def profile(folder: Path, knobs: dict[str, int | str] | None = None, **proven_on: object) -> Path:
    """The example, of 5 members, with other knobs or from elsewhere."""
    document: dict[str, Any] = json.loads(EXAMPLE.read_text())
    document["knobs"] = knobs or document["knobs"]
    document["proven_on"] |= proven_on
    path = folder / "theirs.json"
    path.write_text(json.dumps(document))
    return path


def bring(file: Path, state: Path, *words: object) -> tuple[int, dict[str, Any]]:
    """Import it, measured by the rate of a check, and return the exit code and what it says."""
    workload = file.with_name("check.toml")
    workload.write_text(WORKLOAD)
    where = words or ("--device", "/dev/md0")
    done = autotune("import", file, *where, "--workload", workload, "--json", state=state)
    assert done.stdout, done.stderr
    document = json.loads(done.stdout)
    assert "arrays" in document, document
    return done.returncode, document["arrays"][0]


def test_members_are_read_and_nothing_else(rate: int) -> None:
    # 80 MB/s each, if the machine that simulates them has the time.
    assert 15_000 < rate < 110_000


def test_a_dry_run_shows_what_it_comes_to_within_this_machines_memory(
    state: Path, tmp_path: Path
) -> None:
    before = knob_files()
    code, there = bring(profile(tmp_path), state, "--device", "/dev/md0", "--dry-run")
    assert code == 0
    assert knob_files() == before
    plan = {change["knob"]: change for change in there["plan"]}
    cache = plan["stripe_cache_size"]
    assert cache["there"] == 3072
    stripe_bytes = 4 * 4096 + 224 + 368 * 4
    assert 256 < cache["here"] < total_bytes() * BUDGET_SHARE / stripe_bytes < 3072
    assert "the budget leaves" in cache["why"]
    assert plan["scheduler"]["here"] == "kyber"


@pytest.mark.parametrize("proven_on", [{"level": "raid5"}, {"media": "ssd"}])
def test_another_class_is_refused(
    state: Path, tmp_path: Path, proven_on: dict[str, object]
) -> None:
    before = knob_files()
    code, there = bring(profile(tmp_path, **proven_on), state)
    assert code == 1
    assert len(there["refusals"]) == 1
    assert knob_files() == before


@pytest.mark.slow
def test_what_is_no_worse_is_kept_and_status_follows_it(state: Path, tmp_path: Path) -> None:
    before = knob_files()
    assert autotune_json("status", state=state)["arrays"][0]["profile"] is None
    code, there = bring(profile(tmp_path), state)
    assert (code, there["kept"]) == (0, True), there
    for change in there["plan"]:
        if change["knob"] in ("stripe_cache_size", "sync_speed_max"):
            assert read(MD / change["knob"]).split()[0] == str(change["here"])
    assert read(MD / "stripe_cache_size") != "256"

    (now,) = autotune_json("status", "/dev/md0", state=state)["arrays"]
    assert (now["ok"], now["how"], now["profile"]) == (True, "applied", "md0-quick")
    assert not autotune("diff", there["profile_path"], "/dev/md0", state=state).returncode
    same = autotune_json("diff", there["run"], "/dev/md0", state=state)
    assert same["same"], same

    (MD / "stripe_cache_size").write_text("333")
    turned = autotune("status", "--json", state=state)
    assert turned.returncode == 1
    (knob,) = [k for k in json.loads(turned.stdout)["arrays"][0]["knobs"].values() if not k["same"]]
    assert (knob["value"], knob["by"]) == (
        333,
        ["By hand, by another program, or by `autotune restore`."],
    )
    (MD / "stripe_cache_size").write_text(str(knob["wanted"]))

    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    assert knob_files() == before
    assert autotune_json("status", state=state)["arrays"][0]["profile"] is None


@pytest.mark.slow
def test_a_winner_whose_run_cannot_be_stored_does_not_stay(state: Path, tmp_path: Path) -> None:
    before, finish = knob_files(), Store.finish_run

    def full(store: Store, run: int, outcome: str, *rest: Any) -> None:
        if outcome == "done":
            raise AutotuneError("The disk that holds the store is full.")
        finish(store, run, outcome, *rest)

    workload = tmp_path / "check.toml"
    workload.write_text(WORKLOAD)
    words = ("import", profile(tmp_path), "--device", "/dev/md0", "--workload", workload)
    with mock.patch.object(Store, "finish_run", full):
        done = autotune(*words, state=state)
    assert (done.returncode, "is full" in done.stderr) == (1, True), done.stderr
    assert knob_files() == before
    assert autotune_json("status", state=state)["arrays"][0]["profile"] is None


def slow(folder: Path, rate: int) -> tuple[Path, int]:
    """A profile that hardly lets a sync go on, from members four times as fast."""
    speeds: dict[str, int | str] = {"sync_speed_min": 4000, "sync_speed_max": 8000}
    return profile(folder, speeds, member_kib_s=4 * rate), 2000


@pytest.mark.slow
def test_what_is_worse_is_put_back(state: Path, tmp_path: Path, rate: int) -> None:
    before = knob_files()
    file, here = slow(tmp_path, rate)
    code, there = bring(file, state)
    assert (code, there["kept"]) == (1, False), json.dumps(there)
    assert there["reason"] == "worse beyond noise"
    assert there["gain"]["high"] < 0.8
    highest = there["plan"][1]
    assert highest["there"] == 8000
    # A second reading of the members is never quite like the first.
    assert here / 2 <= highest["here"] <= here * 1.5
    assert knob_files() == before
    assert autotune_json("status", state=state)["arrays"][0]["profile"] is None
    assert not list((state / "journal").glob("*"))
    (array,) = autotune_json("report", "/dev/md0", state=state)
    (run,) = autotune_json("report", there["run"], state=state)
    newest = array["runs"][0]
    assert newest["run"] == run["run"] == there["run"]
    assert newest["given"] == run["given"] == "md0-quick"
    assert newest["gain"] == there["gain"] == run["gain"]


def test_unmeasured_it_is_applied_to_every_array_that_it_fits(state: Path, tmp_path: Path) -> None:
    before = knob_files()
    file = profile(tmp_path, {"read_ahead_kb": 768})
    code, there = bring(file, state, "--all", "--no-verify")
    assert (code, there["kept"], there["run"]) == (0, True, None)
    # 2 × 64 KiB are in a stripe here, 3 × 64 there.
    assert read(Path("/sys/block/md0/queue/read_ahead_kb")) == "512"
    assert autotune_json("status", state=state)["ok"]
    assert autotune("restore", "/dev/md0", state=state).returncode == 0
    assert knob_files() == before


@pytest.mark.slow
def test_a_kill_leaves_nothing_behind(state: Path, tmp_path: Path, rate: int) -> None:
    before = knob_files()
    file, _ = slow(tmp_path, rate)
    workload = tmp_path / "check.toml"
    workload.write_text(WORKLOAD)
    words = ("import", file, "--device", "/dev/md0", "--workload", workload)
    process = start(*words, state=state)

    def changed() -> bool:
        assert process.poll() is None, process.communicate()
        return read(MD / "sync_speed_max").split()[0] != "200000"

    wait_until(changed, 120, "the profile's turn")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_until(lambda: not list((state / "journal").glob("*")), 60, "the guardian")
    assert knob_files() == before
    assert autotune("status", state=state).returncode == 0
