"""The wheel alone, in an empty environment elsewhere: what is not packed is missed here."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_works_without_the_checkout(tmp_path: Path) -> None:
    def run(*words: str | Path, timeout_s: float = 600) -> str:
        done = subprocess.run(
            list(map(str, words)),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", tmp_path, TOP)
    (wheel,) = tmp_path.glob("autotune_md-*.whl")
    # Its libraries are an extra's, so it is not made here.
    assert "autotune/report/page.html" in zipfile.ZipFile(wheel).namelist()
    run(sys.executable, "-m", "venv", tmp_path / "empty")
    run(tmp_path / "empty/bin/pip", "install", "-q", wheel)
    autotune = tmp_path / "empty/bin/autotune"
    run(autotune, "show")
    assert "raid6-hdd" in run(autotune, "lab", "--list")
    assert "database" in run(autotune, "profiles", "--state-dir", tmp_path)
    profile = TOP / "examples/profile.json"
    for form in ("json", "shell", "ansible", "systemd"):
        run(autotune, "export", profile, "--format", form, "--out", tmp_path / form)
    assert "autotune-restore.service" in run(autotune, "service", "install", "--dry-run")
