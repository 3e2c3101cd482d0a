"""Standard error for journals: an object a line, whoever says it."""

import io
import json
import os
import subprocess
import sys
import threading
import time

import pytest

from autotune.cli.json_lines import JsonLines
from autotune.cli.terminal import LOG_FORMAT


def autotune(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**{k: v for k, v in os.environ.items() if k != LOG_FORMAT}, **environment}
    return subprocess.run(
        [sys.executable, "-m", "autotune", *words],
        capture_output=True, text=True, check=False, env=env,
    )  # fmt: skip


@pytest.mark.parametrize("command", ["run", "guard", "retune"])
@pytest.mark.parametrize("words", [("--log-format", "json"), ("--log-format=json",)])
def test_what_a_command_says_is_an_object_a_line(command: str, words: tuple[str, ...]) -> None:
    done = autotune(command, "/dev/nosuch", *words)
    assert done.returncode == 2
    (document,) = map(json.loads, done.stderr.splitlines())
    assert set(document) == {"kind", "time_s", "text"}
    assert document["kind"] == "notice"
    assert document["text"].startswith("There is no ")
    assert document["time_s"] == pytest.approx(time.time(), abs=600)


def test_the_environment_asks_for_it_too_and_the_option_goes_first() -> None:
    asked = {LOG_FORMAT: "json"}
    assert json.loads(autotune("show", "/dev/nosuch", **asked).stderr)["text"]
    plain = autotune("guard", "/dev/nosuch", "--log-format", "text", **asked).stderr
    assert plain.startswith("autotune: There is no ")


def test_wrong_words_are_objects_too_and_a_wrong_form_is_named() -> None:
    for line in autotune("run", "--log-format", "json", "--nonsense").stderr.splitlines():
        assert json.loads(line)["text"]
    done = autotune("run", "--log-format", "xml")
    assert done.returncode == 2
    assert 'no log format "xml"; choose text or json' in done.stderr


def test_lines_come_whole_and_threads_do_not_mix_theirs() -> None:
    kept = io.StringIO()
    stream = JsonLines(kept)
    assert not stream.isatty()

    def say(name: str) -> None:
        for _ in range(200):
            print(name, "says", file=stream, end="")
            time.sleep(0)
            print(" more", file=stream)

    threads = [threading.Thread(target=say, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = [json.loads(line)["text"] for line in kept.getvalue().splitlines()]
    assert sorted(said) == ["one says more"] * 200 + ["two says more"] * 200


def test_a_prefix_and_empty_lines_are_left_out() -> None:
    kept = io.StringIO()
    print("autotune: one\n\ntwo", file=JsonLines(kept))
    assert [json.loads(line)["text"] for line in kept.getvalue().splitlines()] == ["one", "two"]
