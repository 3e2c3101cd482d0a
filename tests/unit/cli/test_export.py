"""`autotune export` as a user meets it."""

import configparser
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from store_records import filled

from autotune.store.database import Store

PROFILE = Path(__file__).parents[3] / "examples/profile.json"
UUID = "f6e606b3:8ce3aa59:41c0aa90:d0ab4f9c"


def export(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "autotune", "export", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_one_file_goes_to_the_standard_output_and_more_to_a_folder(tmp_path: Path) -> None:
    done = export(PROFILE, "--format", "udev", "--array", UUID)
    assert (done.returncode, done.stderr) == (0, "")
    assert f'ENV{{MD_UUID}}=="{UUID}"' in done.stdout
    assert 'ENV{ID_FS_UUID}=="f6e606b3-8ce3-aa59-41c0-aa90d0ab4f9c"' in done.stdout
    done = export(PROFILE, "--format", "tuned")
    assert done.returncode == 2
    assert "--out" in done.stderr
    done = export(PROFILE, "--format", "tuned", "--out", tmp_path)
    written = [Path(line) for line in done.stdout.splitlines()]
    assert sorted(written) == sorted(p for p in tmp_path.rglob("*") if p.is_file())
    assert all(os.access(p, os.X_OK) == (p.suffix == ".sh") for p in written)
    document = json.loads(export(PROFILE, "--format", "tuned", "--json").stdout)
    assert {tmp_path / name: text for name, text in document["files"].items()} == {
        path: path.read_text() for path in written
    }


def test_a_tuned_profile_says_where_tuned_looks_for_it(tmp_path: Path) -> None:
    export(PROFILE, "--format", "tuned", "--out", tmp_path)
    (conf,) = tmp_path.glob("*/tuned.conf")
    said = " ".join(line.removeprefix("# ").strip() for line in conf.read_text().splitlines())
    assert "in /etc/tuned/profiles; before TuneD 2.23, in /etc/tuned." in said


def test_the_newest_run_with_a_profile_is_what_is_meant(tmp_path: Path) -> None:
    assert "name a profile" in export("--state-dir", tmp_path).stderr
    filled(tmp_path)
    assert "No run has saved" in export("--state-dir", tmp_path).stderr
    store = Store(tmp_path)
    for name in ("older", "newer"):
        document = json.loads(PROFILE.read_text()) | {"name": name}
        number = store.start_run("u", "/dev/md0", "print", {})
        store.finish_run(number, "done", "", document)
    store.start_run("u", "/dev/md0", "print", {})
    assert json.loads(export("--state-dir", tmp_path).stdout)["name"] == "newer"
    assert json.loads(export(2, "--state-dir", tmp_path).stdout)["name"] == "older"
    assert "has no profile" in export(1, "--state-dir", tmp_path).stderr
    assert "There is no run 99" in export(99, "--state-dir", tmp_path).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "rpm"), "the formats are json, udev"),
        (("--format", "shell", "--array", UUID), "leave out --array"),
        (("--format", "udev", "--array", "/dev/nonsense"), "There is no /dev/nonsense"),
    ],
)
def test_what_makes_no_sense_is_wrong_usage(words: tuple[str, ...], said: str) -> None:
    done = export(PROFILE, *words)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr


@pytest.mark.parametrize(("state", "undone"), [("stopping", False), ("running", True)])
def test_the_unit_does_not_delay_a_shutdown(tmp_path: Path, state: str, undone: bool) -> None:
    """A sync may refuse a value for as long as it runs."""
    export(PROFILE, "--format", "systemd", "--out", tmp_path)
    (unit,) = tmp_path.glob("*.service")
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string(unit.read_text().replace("\\\n", ""))
    words = shlex.split(parser["Service"]["ExecStopPost"].replace("$$", "$"))
    for name, text in (("systemctl", f"echo {state}"), ("script", f"echo $* > {tmp_path}/undone")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        [*words[:3], tmp_path / "script", "/dev/md0"],
        env={**os.environ, "PATH": path, "SERVICE_RESULT": "success"},
        check=True,
    )
    assert (tmp_path / "undone").exists() is undone


@pytest.mark.parametrize("form", ["json", "udev", "tuned", "ansible", "shell", "systemd"])
def test_what_was_made_from_another_profile_is_not_replaced(tmp_path: Path, form: str) -> None:
    """Of the same name, as each host has that has a /dev/md0."""
    other, newer = tmp_path / "other.json", tmp_path / "newer.json"
    document = json.loads(PROFILE.read_text())
    newer.write_text(json.dumps(document | {"created": "2026-12-01T00:00:00Z"}))
    document["proven_on"]["uuid"] = "ab" * 16
    other.write_text(json.dumps(document))
    out = tmp_path / "out"
    # The name of a rule has the array in it.
    array = ("--array", UUID) if form == "udev" else ()
    words = ("--format", form, "--out", out, *array)
    assert export(other, *words).returncode == 0
    before = {path: path.read_text() for path in out.rglob("*") if path.is_file()}
    assert export(other, *words).returncode == 0
    done = export(PROFILE, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"was made from another profile, {document['name']} of 2026-11-21 (" in done.stderr
    assert "replace it with --replace" in done.stderr
    assert {path: path.read_text() for path in out.rglob("*") if path.is_file()} == before
    assert export(PROFILE, *words, "--replace").returncode == 0
    assert all(path.read_text() != text for path, text in before.items())
    assert export(newer, *words).returncode == 0, "of the same array"
    next(iter(before)).write_text("mine")
    assert "is no export of autotune" in export(PROFILE, *words).stderr


def test_what_was_exported_before_survives_a_full_disk(tmp_path: Path) -> None:
    (written,) = export(PROFILE, "--out", tmp_path).stdout.split()
    before = Path(written).read_text()
    command = f"ulimit -f 1; exec {sys.executable} -m autotune export {PROFILE} --out {tmp_path}"
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {command}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert Path(written).read_text() == before
    assert [str(path) for path in tmp_path.iterdir()] == [written]


def test_of_several_files_a_full_disk_takes_all_or_none(tmp_path: Path) -> None:
    words = f"{PROFILE} --format ansible --out {tmp_path}"
    command = f"ulimit -f 1; exec {sys.executable} -m autotune export {words}"
    done = subprocess.run(
        ["bash", "-c", f"trap '' XFSZ; {command}"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "cannot be written" in done.stderr) == (1, True)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_number_in_other_digits_is_a_name(tmp_path: Path) -> None:
    filled(tmp_path)
    done = export("³", "--state-dir", tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_no_folder_is_written_to_that_somebody_elses_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    out = tmp_path / "out"
    assert export(PROFILE, "--format", "ansible", "--out", out).returncode == 0
    for folder in [out, *sorted(path for path in out.rglob("*") if path.is_dir())]:
        folder.rename(folder.with_name("away"))
        folder.symlink_to(tmp_path / "theirs")
        os.chown(folder, 65534, 65534, follow_symlinks=False)
        done = export(PROFILE, "--format", "ansible", "--out", out)
        assert (done.returncode, done.stdout) == (1, "")
        assert "is a link that somebody else has made" in done.stderr
        assert not list((tmp_path / "theirs").iterdir())
        folder.unlink()
        folder.with_name("away").rename(folder)
