"""In the lab: create the array anew, forecast it, check it and rebuild a member; then tune, and
check and rebuild it once more."""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autotune.sync_forecast.model import CHECK, REBUILD
from autotune.system.array import Array, find_array
from benchmarks.forecast.rebuild import Foreground, foretold, mdadm, rebuild, wait_for

DEVICE = "/dev/md0"
TUNING = ("--workload", "rebuild", "--trials", "10", "--time", "15min", "--apply", "--json")


def created(array: Array) -> float:
    """Make the array anew as mdadm does by itself; how long its first sync takes."""
    members = [f"/dev/{member.name}" for member in array.members]
    chunk = [] if array.level == "raid1" else [f"--chunk={array.chunk_bytes // 1024}"]
    mdadm("--stop", array.device)
    mdadm("--zero-superblock", *members)
    words = (f"--level={array.level}", f"--raid-devices={array.raid_disks}", "--bitmap=none")
    mdadm("--create", array.device, "--run", "--metadata=1.2", *words, *chunk, *members)
    wait_for(array, idle=False)
    began = time.monotonic()
    wait_for(array, idle=True)
    return time.monotonic() - began


def checked(array: Array) -> float:
    """How long a check takes."""
    (array.md / "sync_action").write_text("check")
    began = time.monotonic()
    wait_for(array, idle=True)
    return time.monotonic() - began


def tuned() -> str:
    """Let autotune tune for rebuilds, and keep what it has proven; how that ended."""
    with TemporaryDirectory() as state:
        command = (sys.executable, "-m", "autotune", "run", DEVICE, *TUNING, "--state-dir", state)
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            return "failed"
        return "applied" if json.loads(done.stdout)["adopt"] else "kept as it was"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rebuild.guest")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--commit", required=True, help="the code that is measured")
    parser.add_argument("--tune", action="store_true")
    chosen = parser.parse_args()
    found: dict[str, Any] = {"commit": chosen.commit}
    found["created_s"] = created(find_array(DEVICE))
    array = find_array(DEVICE)
    said = foretold(array, "4min")
    found |= {"said_check_s": said.time(CHECK).value, "said_rebuild_s": said.time(REBUILD).value}
    nobody = Foreground(array, 0)
    found["check_s"] = checked(array)
    found["rebuild_s"], _ = rebuild(array, "system", nobody)
    if chosen.tune:
        found["tuning"] = tuned()
        found["tuned_check_s"] = checked(array)
        limit = (array.md / "sync_speed_max").read_text()
        found["tuned_rebuild_s"], _ = rebuild(
            array, "system" if "system" in limit else limit.split()[0], nobody
        )
    chosen.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
