"""Unit and contract tests on each Python that is to be had, and once with the oldest libraries
allowed.

python packaging/versions.py [VERSION...]     such as 3.12; "lowest" is the last of them

A Python that is not here comes from the Debian that has it, for which it takes root, mmdebstrap
and patchelf.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).parents[1]
CACHE = Path(os.environ.get("AUTOTUNE_CACHE", "/var/cache/autotune-machines"))
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "unstable"}
"""The Debian whose Python it is."""
TESTS = ("tests/unit", "tests/contract")
UV = str(Path(sys.executable).with_name("uv"))
TOOLS = ("pytest", "pytest-timeout", "pytest-xdist", "pyte", "hypothesis", "ansible-core")


def main() -> int:
    if shutil.which("pyenv"):
        # Its programs of the Pythons that are not chosen only say so.
        listed = subprocess.run(["pyenv", "versions", "--bare"], capture_output=True, check=True)
        os.environ["PYENV_VERSION"] = ":".join(listed.stdout.decode().split())
    results = {wanted: result_of(wanted) for wanted in sys.argv[1:] or (*PYTHONS, "lowest")}
    for wanted, result in results.items():
        print(f"{wanted}: {result}")
    return 1 if "FAILED" in results.values() else 0


def result_of(wanted: str) -> str:
    """What became of the tests on a Python: "passed", "FAILED", or why there were none."""
    with tempfile.TemporaryDirectory() as folder:
        if not makes_environment(PYTHONS[0] if wanted == "lowest" else wanted, folder):
            return "this Python is not to be had here"
        inside = str(Path(folder) / "bin/python")
        install = [UV, "pip", "install", "--quiet", "--python", inside]
        # Of autotune itself, its requirements would not count as direct ones.
        needs = ["--requirements", TOP / "pyproject.toml", "--extra=optuna", "--extra=report"]
        lowest = ["--resolution=lowest-direct"] if wanted == "lowest" else []
        installs = [[*install, *lowest, *needs], [*install, "--no-deps", "--editable", TOP]]
        installs.append([*install, *TOOLS])
        tests = [inside, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        tests += ["-n", "2", "--dist", "worksteal"]
        steps = [*installs, [*tests, *TESTS]]
        good = all(subprocess.run(step, cwd=TOP, check=False).returncode == 0 for step in steps)
    return "passed" if good else "FAILED"


def makes_environment(version: str, folder: str) -> bool:
    """Whether there is a virtual environment of this Python in the folder now."""
    make = [UV, "venv", "--quiet", "--no-python-downloads", "--clear", folder, "--python"]
    if subprocess.run([*make, version], check=False).returncode == 0:
        return True
    if version not in SUITES:
        return False
    system = CACHE / f"python-{version}"
    if not system.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        script = TOP / "packaging/program_of.sh"
        packages = ("python3", "python3-venv")
        subprocess.run([script, SUITES[version], system, "python3", *packages], check=True)
    # A Debian may have gone on to another one.
    python = system / f"usr/bin/python{version}"
    return python.exists() and subprocess.run([*make, python], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
