"""What the units that start at boot load, and what the guard that waits takes of memory."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("numpy", "scipy", "sklearn", "skopt", "sqlalchemy", "alembic", "rich")
MOST_KIB = 30 * 1024

WAITING = """
import json, sys
sys.path.insert(0, sys.argv[1])
import fake_sysfs
from pathlib import Path
from autotune.cli import guarding
from autotune.guard import session
from autotune.system.array import find_array

machine = fake_sysfs.raid6(Path(sys.argv[2]))

def waits(array, pause, for_the_next):
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    print(json.dumps({"modules": list(sys.modules), "rss": int(status["VmRSS"].split()[0])}))
    return False

refusal = session.refusal
session.refusal = lambda array: refusal(array) and None
session.find_array = guarding.find_array = lambda device: find_array(device, machine.root)
session.wait_for_one = waits
words = ("md0", 1e6, 9e4, None, None, "", 6e5, 1e6, True, False, sys.argv[2], None, ("/bin/true",))
guarding.guard(guarding.GuardArguments(*words))
"""
LOADED = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps({"modules": list(sys.modules)})))
from autotune.cli.main import main
main()
"""


def loaded(source: str, *words: str) -> dict[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-c", source, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return document


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may")
def test_restoring_at_boot_loads_nothing_heavy(tmp_path: Path) -> None:
    modules = loaded(LOADED, "restore", "--state-dir", str(tmp_path))["modules"]
    assert "autotune.safety.restore" in modules
    assert {*HEAVY} & {*modules} == set()


def test_a_guard_that_waits_is_small(tmp_path: Path) -> None:
    seen = loaded(WAITING, str(Path(__file__).parents[1]), str(tmp_path))
    assert "autotune.guard.session" in seen["modules"]
    assert {*HEAVY, "pydantic", "typer"} & {*seen["modules"]} == set()
    assert seen["rss"] < MOST_KIB
