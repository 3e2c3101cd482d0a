"""Unit and contract tests on each Python that is here, and once with the oldest libraries allowed.

python packaging/versions.py [VERSION...]     such as 3.12; "lowest" is the last of them
"""

import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/unit", "tests/contract")
UV = str(Path(sys.executable).with_name("uv"))
TOOLS = ("pytest", "pytest-timeout", "hypothesis", "ansible-core")


def main() -> int:
    failed = []
    for wanted in sys.argv[1:] or (*PYTHONS, "lowest"):
        python = PYTHONS[0] if wanted == "lowest" else wanted
        with tempfile.TemporaryDirectory() as folder:
            made = [UV, "venv", "--quiet", "--no-python-downloads", "--python", python, folder]
            if subprocess.run(made, check=False).returncode:
                print(f"{wanted}: this Python is not here", flush=True)
                continue
            inside = str(Path(folder) / "bin/python")
            install = [UV, "pip", "install", "--quiet", "--python", inside]
            # Of autotune itself, its requirements would not count as direct ones.
            needs = [
                "--requirements",
                str(TOP / "pyproject.toml"),
                "--extra",
                "optuna",
                "--extra",
                "report",
            ]
            lowest = ["--resolution=lowest-direct"] if wanted == "lowest" else []
            installs = [[*install, *lowest, *needs], [*install, "--no-deps", "--editable", TOP]]
            installs.append([*install, *TOOLS])
            tests = [inside, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
            steps = [*installs, [*tests, *TESTS]]
            good = all(subprocess.run(step, cwd=TOP, check=False).returncode == 0 for step in steps)
            print(f"{wanted}: {'passed' if good else 'FAILED'}", flush=True)
            failed += [] if good else [wanted]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
