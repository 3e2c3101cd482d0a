"""What is asked of systemd for the guardian. That it does it shows on whole machines only."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from autotune.safety import scope


def test_systemd_is_asked_only_where_it_is_the_first_process(tmp_path: Path) -> None:
    assert not scope.runs_here(tmp_path)
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    (tmp_path / "proc/1").mkdir(parents=True)
    # A container with the host's /run: its numbers of processes are not the host's.
    (tmp_path / "proc/1/comm").write_text("sh\n")
    assert not scope.runs_here(tmp_path)
    (tmp_path / "proc/1/comm").write_text("systemd\n")
    assert scope.runs_here(tmp_path)


@pytest.mark.parametrize(
    "script", ["exit 1", "sleep 30", ""], ids=["refused", "no answer", "no such program"]
)
def test_without_an_answer_it_stays_where_it_is(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        (tmp_path / "busctl").write_text(f"#!/bin/sh\nexec >/dev/null; {script}\n")
        (tmp_path / "busctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + (os.pathsep + os.environ["PATH"]) * bool(script))
    monkeypatch.setattr(scope, "runs_here", lambda: True)
    scope.move(os.getpid())


@pytest.fixture
def bus() -> Iterator[str]:
    """The address of a bus on which systemd is not."""
    if not shutil.which("dbus-daemon") or not shutil.which("busctl"):
        pytest.skip("needs dbus-daemon and busctl")
    daemon = subprocess.Popen(
        ["dbus-daemon", "--session", "--nofork", "--print-address"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert daemon.stdout is not None
    yield daemon.stdout.readline().strip()
    daemon.terminate()
    daemon.wait()


def test_busctl_understands_the_call(bus: str) -> None:
    program, *words = scope.command(123)
    done = subprocess.run(
        [program, f"--address={bus}", *words], capture_output=True, text=True, check=False
    )
    # It was put together whole, and sent; a wrong signature is told of before.
    assert "org.freedesktop.systemd1" in done.stderr
    assert "123" in words
    cut = subprocess.run(
        [program, f"--address={bus}", *words[:-1]], capture_output=True, text=True, check=False
    )
    assert cut.stderr != done.stderr
