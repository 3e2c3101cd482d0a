"""The command line as a user meets it, without an array."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from autotune.cli.groups import GroupedCommands
from autotune.errors import AutotuneError
from autotune.safety.record import BOOT_ID


def autotune(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "autotune", *words], capture_output=True, text=True, check=False
    )


COMMANDS = (
    *("run", "show", "doctor", "apply", "restore", "unpersist", "export", "history", "solve"),
    *("lab", "status", "import", "profiles", "diff", "retune", "config", "service", "guard"),
    *("check", "forecast", "report", "design"),
)


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    source = (
        "import sys; from autotune.cli.main import app; "
        "print([m for m in ('numpy', 'scipy', 'sklearn', 'sqlalchemy', 'pydantic', 'rich') "
        "if m in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert loaded.stdout.strip() == "[]", loaded.stderr
    text = autotune("--help").stdout
    assert all(command in text for command in COMMANDS)


@pytest.mark.parametrize("command", [*COMMANDS, ""])
def test_help_fits_80_columns(command: str) -> None:
    text = autotune(*command.split(), "--help").stdout
    assert text
    assert max(len(line) for line in text.splitlines()) <= 80
    # Names of types and formulas of ranges are for programmers.
    for word in ("<str>", "<list", "<int", "<path>", "<=", ">=", "[[", "{"):
        assert word not in text


@pytest.mark.parametrize(
    "words", [(), ("nonsense",), ("run",), ("run", "--trials", "0", "/dev/md0"), ("history", "x")]
)
def test_wrong_usage_is_exit_code_2(words: tuple[str, ...]) -> None:
    done = autotune(*words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_careful_and_eager_exclude_each_other() -> None:
    done = autotune("run", "/dev/md0", "--careful", "--eager")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


def test_an_error_is_one_sentence_and_json_if_asked_for() -> None:
    done = autotune("run", "/dev/nonsense", "--json")
    assert done.returncode == 2
    assert "There is no /dev/nonsense" in json.loads(done.stdout)["error"]
    assert done.stderr.startswith("autotune: There is no /dev/nonsense")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("words", ["history --json", "history", "run /dev/nonsense --json"])
def test_an_answer_that_the_disk_does_not_take_is_one_sentence(words: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m autotune {words} --state-dir {tmp_path} > /dev/full"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert done.stderr.startswith("autotune: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_has_seen_enough_keeps_nothing_from_being_done() -> None:
    """As `autotune run --apply --persist | head`: the rest is done, in silence."""
    script = """
from autotune.cli.ending import ending
from autotune.cli.output import outlast_readers
import sys
outlast_readers()
with ending(False):
    for number in range(100_000):
        print(number)
    sys.stdout.flush()
    print("and done", file=sys.stderr)
"""
    command = ["sh", "-c", f"{sys.executable} -c '{script}' | true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == "and done\n"
    command = ["sh", "-c", f"{sys.executable} -c '{script}' > /dev/full"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    words = "What this printed could not be written: No space left on device."
    assert done.stderr == f"and done\nautotune: {words}\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
@pytest.mark.parametrize(("how", "said"), [([], "Nothing to restore.\n"), (["--abandoned"], "")])
def test_restore_with_nothing_to_do_says_so_but_to_the_timer(
    tmp_path: object, how: list[str], said: str
) -> None:
    done = autotune("restore", *how, "--state-dir", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_a_journal_that_is_a_dead_link_is_named(tmp_path: Path) -> None:
    link = tmp_path / "journal/f6e606b38ce3aa5941c0aa90d0ab4f9c.jsonl"
    link.parent.mkdir()
    link.symlink_to("nowhere")
    done = autotune("restore", "--state-dir", str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{link} is a link that leads nowhere; remove it" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_restore_without_an_array_names_what_is_applied(tmp_path: Path) -> None:
    boot = BOOT_ID.read_text().strip()
    head = {"uuid": "u", "device": "/dev/md0", "boot": boot, "pid": 1, "originals": {}}
    record = tmp_path / "applied/u.jsonl"
    record.parent.mkdir()
    record.write_text(json.dumps(head) + "\n")
    done = autotune("restore", "--state-dir", str(tmp_path))
    command = f"autotune restore /dev/md0 --state-dir {tmp_path}"
    assert done.stdout.splitlines()[0] == "Nothing to restore."
    assert f"A profile is applied to /dev/md0; `{command}` undoes that." in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
@pytest.mark.parametrize("json_or_text", [[], ["--json"]])
def test_status_suggests_a_command_for_the_folder_it_was_given(
    tmp_path: Path, json_or_text: list[str]
) -> None:
    journal = tmp_path / "journal/f6e606b38ce3aa5941c0aa90d0ab4f9c.jsonl"
    journal.parent.mkdir()
    journal.write_text('{"kind": "op')
    done = autotune("status", "--state-dir", str(tmp_path), *json_or_text)
    assert done.returncode == 1
    assert f"`autotune restore --state-dir {tmp_path}`" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_restore_after_a_reboot_removes_what_runs_left(tmp_path: Path) -> None:
    scratch, journals = tmp_path / ".autotune-0123", tmp_path / "journal"
    for folder in (scratch, journals):
        folder.mkdir()
    (scratch / "scratch").write_text("x")
    head = {"uuid": "u", "device": "/dev/md0", "boot": "earlier", "pid": 1, "originals": {"/a": ""}}
    lines = [head, {"kind": "scratch", "path": str(scratch), "mount": "/"}]
    (journals / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (journals / "b.jsonl").write_text('{"kind": "op')
    done = autotune("restore", "--state-dir", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert "what was applied ended with a reboot" in done.stdout
    assert "b.jsonl, which was cut short" in done.stdout
    assert list(tmp_path.iterdir()) == [journals]
    assert not list(journals.iterdir())
    assert autotune("restore", "--state-dir", str(tmp_path)).stdout == "Nothing to restore.\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_one_journal_that_cannot_be_used_does_not_stop_the_others(tmp_path: Path) -> None:
    journals = tmp_path / "journal"
    (journals / "a.jsonl").mkdir(parents=True)
    head = {"uuid": "u", "device": "/dev/md0", "boot": "earlier", "pid": 1, "originals": {}}
    (journals / "b.jsonl").write_text(json.dumps(head) + "\n")
    done = autotune("restore", "--state-dir", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert [path.name for path in journals.iterdir()] == ["a.jsonl"]


def test_history_of_nothing_is_no_error(tmp_path: object) -> None:
    done = autotune("history", "--state-dir", str(tmp_path))
    assert done.returncode == 0
    assert "No runs yet" in done.stdout
    assert json.loads(autotune("history", "--json", "--state-dir", str(tmp_path)).stdout) == []


def test_an_import_to_nothing_says_so() -> None:
    for words in (("--device", ""), ()):
        done = autotune("import", "examples/profile.json", *words)
        assert done.returncode == 2
        assert "Name one array" in done.stderr


def test_a_profile_is_shown_by_its_file_too() -> None:
    done = autotune("profiles", "examples/profile.json")
    assert done.returncode == 0
    assert "stripe_cache_size 3072 (before: 256)" in done.stdout


def test_the_log_of_passes_is_that_of_every_array_if_none_is_named() -> None:
    done = autotune("retune", "--log", "--json")
    assert done.returncode == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    assert autotune("retune").returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&-", "2>&-", "<&-"])
def test_closed_streams_keep_nothing_from_being_done(closed: str, tmp_path: Path) -> None:
    """As where a program that was started by a daemon starts this."""
    words = f"{sys.executable} -m autotune restore --state-dir {tmp_path} {closed}"
    assert subprocess.run(["sh", "-c", words], check=False).returncode == 0
    words = f"{sys.executable} -m autotune run /dev/none --state-dir {tmp_path} {closed}"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "2>" in closed or done.stderr.startswith("autotune: There is no /dev/none")


def test_an_interrupted_command_says_so() -> None:
    """Typer would end it with 130 and without a word."""
    interrupted = typer.Typer(cls=GroupedCommands)

    @interrupted.command()
    def show() -> None:
        raise KeyboardInterrupt

    @interrupted.command()
    def doctor() -> None: ...

    done = CliRunner().invoke(interrupted, ["show"])
    assert isinstance(done.exception, AutotuneError)
    assert "Interrupted" in str(done.exception)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("solve", "x"), "RUN takes a whole number"),
        (("run", "--trials", "x", "/dev/md0"), "--trials takes a whole number"),
        (("run", "--trials", "0", "/dev/md0"), "--trials takes 1 "),
        (("run", "--trails", "3"), 'There is no option --trails (did you mean "--trials"?)'),
        (("histry",), 'There is no command "histry" (did you mean "history"?)'),
        (("solve",), "RUN is missing"),
        (("run", "--all=3"), "--all takes no value"),
        (("show", "a", "b"), '"b" is one argument too many'),
        (("run", "/dev/md0", "--time", "5"), '--time: "5" has no unit; write it like 5min or 5h.'),
        (("run", "/dev/md0", "--ram-budget", "5"), '--ram-budget: "5" has no unit'),
        (("run", "/dev/md0", "--p99-ceiling", "0ms"), '--p99-ceiling: "0ms" is not above zero'),
        (("design", "/dev/sdx", "/dev/sdy", "--time", "x"), '--time: "x" is not a time'),
    ],
)
def test_wrong_usage_is_one_plain_sentence_and_json_too(words: tuple[str, ...], said: str) -> None:
    done = autotune(*words, "--json")
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("autotune: ")
    assert len(done.stderr.splitlines()) == 1
    assert json.loads(done.stdout)["error"] == done.stderr.removeprefix("autotune: ").rstrip("\n")


@pytest.mark.parametrize("command", ["run", "guard", "forecast"])
def test_help_says_what_a_p99_is(command: str) -> None:
    text = " ".join(autotune(command, "--help").stdout.split())
    assert "p99: the time within which 99 of 100 requests are answered." in text


@pytest.mark.parametrize("shortage", ["MemoryError()", 'RuntimeError("can\'t start new thread")'])
def test_a_lack_of_memory_is_said_in_a_sentence(shortage: str) -> None:
    source = f"from autotune.cli.ending import ending\nwith ending(True): raise {shortage}"
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert json.loads(done.stdout)["error"].startswith("There is too little memory")


def test_ctrl_c_while_it_starts_is_no_traceback(tmp_path: Path) -> None:
    """Here it comes with the first import of a command line."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    done = subprocess.run(
        [sys.executable, "-m", "autotune", "history"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "autotune: Interrupted.\n")
