"""The process of a guard: what it says where, and what it keeps. The guarding itself is made up."""

import json
import os
import subprocess
import sys
from pathlib import Path

import fake_sysfs
import pytest
from some_windows import some_windows
from terminal import on_a_terminal
from typer.testing import CliRunner

from autotune.cli import guarding
from autotune.cli.main import app
from autotune.errors import RefusalError, UsageError
from autotune.guard import stored
from autotune.system.array import find_array

GUARD = """
import sys, time
from pathlib import Path
import fake_sysfs
from some_windows import MS, some_windows
from autotune.cli import guarding
from autotune.guard.session import Summary
from autotune.system.array import find_array

state = Path({state!r})
machine = fake_sysfs.raid6(state / "machine")
guarding.find_array = lambda device: find_array(device, machine.root)

def guard_array(device, options, wait):
    for number, window in enumerate(some_windows(30)):
        options.on_window(window)
        time.sleep(0.02)
        if number == 15:
            options.notice("The recovery is 50% done.")
    options.finished(Summary("recovery", 150.0, 1 << 30, 30, 28, 3, "the recovery is over", False))
    return True

guarding.guard_array = guard_array
words = ("md0", 80 * MS, None, None, None, "", 6e5, 1e6, {wait}, {as_json}, str(state), None, ())
guarding.guard(guarding.GuardArguments(*words))
"""


def script(state: Path, as_json: bool, wait: bool = False) -> str:
    return GUARD.format(state=str(state), as_json=as_json, wait=wait)


def test_in_a_pipe_programs_get_lines_and_people_a_sentence(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    said = {}
    for as_json in (True, False):
        (tmp_path / str(as_json)).mkdir()
        words = [sys.executable, "-c", script(tmp_path / str(as_json), as_json)]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=env)
        assert done.stderr == "autotune: The recovery is 50% done.\n"
        said[as_json] = done.stdout.splitlines()
    *windows, summary = map(json.loads, said[True])
    assert windows == [{"kind": "window", **vars(window)} for window in some_windows(30)]
    assert summary["kind"] == "summary"
    (sentence,) = said[False]
    assert sentence.endswith(
        "within 80.0 ms for 89 % of the measured time (not counting the first seconds after users "
        "came)."
    )


def test_a_terminal_is_drawn_on_and_keeps_the_end(tmp_path: Path) -> None:
    screen, _, before = on_a_terminal(script(tmp_path, False), 80, 24)
    assert "p99   " in before
    assert "Recovery of /dev/md0" in before
    lines = [line.rstrip() for line in screen.display if line.strip()]
    assert lines[0] == "autotune: The recovery is 50% done."
    assert lines[1].startswith("Guarded a recovery for 2 min 30 s")
    assert " ".join(lines[1:]).endswith(
        "89 % of the measured time (not counting the first seconds after users came)."
    )


def test_lines_for_programs_on_a_terminal_are_not_drawn_over(tmp_path: Path) -> None:
    _, sent, _ = on_a_terminal(script(tmp_path, True), 80, 24)
    assert b"\x1b" not in sent
    documents = [json.loads(line) for line in sent.splitlines() if line.startswith(b"{")]
    assert len(documents) == 31


def test_how_the_sync_went_is_kept(tmp_path: Path) -> None:
    on_a_terminal(script(tmp_path, False), 80, 24)
    (sync,) = stored.every(tmp_path)
    assert len(sync.points) == 30
    assert sync.summary is not None
    assert sync.summary.over == 3


def test_one_that_waits_guards_on_though_its_output_has_no_room(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-c", script(tmp_path, True, wait=True)]
        done = subprocess.run(
            words, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=env
        )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("Standard output cannot be written to: No space left") == 1
    (sync,) = stored.every(tmp_path)
    assert sync.summary is not None


@pytest.mark.parametrize("as_json", [False, True])
def test_a_reshape_is_not_called_idle(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    as_json: bool,
) -> None:
    machine = fake_sysfs.raid6(tmp_path)
    monkeypatch.setattr(guarding, "find_array", lambda device: find_array(device, machine.root))
    monkeypatch.setattr(guarding, "guard_array", lambda *_: False)
    asked = guarding.GuardArguments(
        "md0", 8e7, None, None, None, "", 6e5, 1e6, False, as_json, str(tmp_path), None, ()
    )
    guarding.guard(asked)
    assert ("idle" if as_json else "nothing to guard") in capsys.readouterr().out
    machine.put("sys/block/md0/md/sync_action", "reshape")
    with pytest.raises(RefusalError, match="reshape of md0 runs"):
        guarding.guard(asked)


def test_a_deadline_of_the_configuration_may_be_given_up_for_the_ceiling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, asked = fake_sysfs.raid6(tmp_path), list[guarding.GuardArguments]()
    monkeypatch.setattr(
        "autotune.system.array.find_array", lambda device: find_array(device, machine.root)
    )
    monkeypatch.setattr("autotune.preflight.checks.require_root", lambda: None)
    monkeypatch.setattr(guarding, "become", asked.append)
    config = tmp_path / "config.toml"
    words = ["guard", "md0", "--config", str(config), "--if-impossible", "ceiling"]
    config.write_text("[defaults]\nguard_p99 = '200ms'\n")
    assert isinstance(CliRunner().invoke(app, words).exception, UsageError)
    config.write_text("[defaults]\nguard_p99 = '200ms'\nguard_finish_within = '48h'\n")
    assert CliRunner().invoke(app, words).exit_code == 0
    (arguments,) = asked
    assert (arguments.first, arguments.rebuild_s, arguments.within_s) == ("ceiling", 172_800, None)


WAITS = """
def guard_array(device, options, wait):
    while "active 1.0" in metrics.read_text():
        time.sleep(0.01)
    print(metrics.read_text())
    return True

metrics = state / "some-guard-md0.prom"
"""


def test_what_a_killed_guard_told_last_is_over_as_the_next_one_waits(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    (tmp_path / "some-guard-md0.prom").write_text("active 1.0\n")
    text = script(tmp_path, False, wait=True)
    text = text.replace("str(state), None", 'str(state), str(state / "some.prom")')
    text = text.replace("guarding.guard_array = ", f"{WAITS}\nguarding.guard_array = ")
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env, timeout=60)
    (line,) = (
        line for line in done.stdout.splitlines() if line.startswith("autotune_guard_active")
    )
    assert line.endswith(" 0.0")
