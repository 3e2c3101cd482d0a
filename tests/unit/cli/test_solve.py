"""`autotune solve`, `history` and `apply` over a store that a run left, without an array."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_run import baseline, figures, problem, trial

from autotune.cli.report import report
from autotune.cli.solve import solve
from autotune.errors import RefusalError
from autotune.knobs.profile_file import load_profile
from autotune.report import history
from autotune.store.database import Store


@pytest.fixture
def state(tmp_path: Path) -> Path:
    store = Store(tmp_path)
    run = store.start_run("u", "/dev/md0", "print", problem())
    fast = figures(300, 60, 150, 80)
    for record in (baseline(1), baseline(2), trial(3, "search", {"stripe_cache_size": 4096}, fast)):
        store.add_trial(run, record)
    return tmp_path


def autotune(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autotune", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_looser_ceiling_gives_a_profile_that_says_it_was_not_confirmed(state: Path) -> None:
    path = state / "p.json"
    words = ("solve", 1, "--p99-ceiling", "100ms", "--state-dir", state)
    done = autotune(*words, "--save", path)
    assert done.returncode == 0, done.stderr
    assert "stripe_cache_size" in done.stdout
    assert "not proven, 1 trial" in done.stdout
    profile = load_profile(path)
    assert profile.knobs == {"stripe_cache_size": 4096}
    assert not profile.evidence.confirmed
    document = json.loads(autotune(*words, "--json").stdout)
    assert document["confirmed"] is False
    assert document["figures"]["write.p99"]["ceiling"] == 1e8


def test_the_throughput_answer_shows_the_latency_that_it_costs(state: Path) -> None:
    done = autotune("solve", 1, "--name", "throughput", "--state-dir", state)
    (line,) = (text for text in done.stdout.splitlines() if text.startswith("write.p99"))
    assert line.split() == ["write.p99", "30.0", "ms", "60.0", "ms"]


def test_a_figure_that_only_one_side_showed_is_left_out(state: Path) -> None:
    store = Store(state)
    run = store.start_run("u", "/dev/md0", "print", problem())
    before, after = figures(100, 30, 100, 40), figures(200, 30, 100, 40)
    del before["write.p99"]
    store.add_trial(run, trial(1, "baseline", {}, before))
    store.add_trial(run, trial(2, "search", {"stripe_cache_size": 4096}, after))
    for words in ((), ("--json",)):
        done = autotune("solve", run, *words, "--state-dir", state)
        assert done.returncode == 0, done.stderr
        assert "write.p99" not in done.stdout.split("profile")[0]


def test_the_original_settings_are_an_answer_but_no_profile(state: Path) -> None:
    path = state / "p.json"
    done = autotune("solve", 1, "--state-dir", state, "--save", path)
    assert done.returncode == 1
    assert "keep what you have" in done.stdout
    assert "No profile was saved" in done.stderr
    assert not path.exists()
    done = autotune("solve", 1, "--state-dir", state, "--save", path, "--json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert "No profile was saved" in document["error"]
    assert document["figures"]


def test_a_ceiling_that_nothing_held_is_said_in_one_sentence(state: Path) -> None:
    done = autotune("solve", 1, "--p99-ceiling", "resync=20ms", "--state-dir", state)
    assert done.returncode == 1
    assert "resync.p99 40.0 ms where 20.0 ms is allowed" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [(9,), (1, "--name", "speed"), (1, "--p99-ceiling", "nowhere=20ms")]
)
def test_wrong_usage_is_exit_code_2(state: Path, words: tuple[object, ...]) -> None:
    done = autotune("solve", *words, "--state-dir", state)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_the_history_of_a_run_has_its_answers(state: Path) -> None:
    document = json.loads(autotune("history", 1, "--json", "--state-dir", state).stdout)
    answers = {n: a["setting"]["stripe_cache_size"] for n, a in document["named"].items()}
    assert answers == {"throughput": 4096, "balanced": 256, "latency": 256}
    assert [point["setting"]["stripe_cache_size"] for point in document["front"]] == [256, 4096]


def test_the_history_of_a_run_without_a_baseline_has_none(tmp_path: Path) -> None:
    Store(tmp_path).start_run("u", "/dev/md0", "print", problem())
    document = json.loads(autotune("history", 1, "--json", "--state-dir", tmp_path).stdout)
    assert document["named"] is None
    assert document["front"] == []


def test_a_run_that_is_under_way_is_said_to_be_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    run = store.start_run("u", "/dev/md0", "print", problem())
    monkeypatch.setattr(history, "is_locked", lambda uuid: True)
    with pytest.raises(RefusalError, match=r"^Run 1 is under way; wait for its end\.$"):
        solve(run, as_json=False, state_dir=tmp_path)
    with pytest.raises(RefusalError, match=r"^Run 1 is under way; wait for its end\.$"):
        report([str(run)], as_json=True, state_dir=tmp_path)
    monkeypatch.setattr(history, "is_locked", lambda uuid: False)
    with pytest.raises(RefusalError, match="ended before the original settings"):
        solve(run, as_json=False, state_dir=tmp_path)


def test_the_commands_of_a_run_have_its_folder(state: Path) -> None:
    text = " ".join(autotune("history", 1, "--state-dir", state).stdout.split())
    assert f"`autotune solve 1 --name NAME --save FILE --state-dir {state}`" in text
    assert f"`autotune report 1 --state-dir {state}`" in text
