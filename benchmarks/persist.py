"""python -m benchmarks.persist DEVICE PROFILE: how soon a profile is back after an assembly.

To be run in the lab, where udevd runs. Seconds count from the moment at which mdadm has assembled
the array.
"""

import argparse
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.deploy.persist import persist, unpersist
from autotune.knobs import by_name, read_setting
from autotune.knobs.profile_file import load_profile
from autotune.problem.profile import Profile
from autotune.system.array import Array, find_array

ASSEMBLIES = 20
LONGEST_S = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.persist")
    parser.add_argument("device")
    parser.add_argument("profile", type=Path)
    chosen = parser.parse_args()
    array, profile = find_array(chosen.device), load_profile(chosen.profile)
    with TemporaryDirectory() as state:
        persist(profile, array, Path(state), print)
        took_s = sorted(seconds_until_back(array, profile) for _ in range(ASSEMBLIES))
        unpersist(array.uuid)
    median_s = took_s[ASSEMBLIES // 2]
    print(f"{ASSEMBLIES} assemblies: back after {median_s:.2f} s at the median", end=", ")
    print(f"{took_s[0]:.2f} to {took_s[-1]:.2f} s.")


def seconds_until_back(array: Array, profile: Profile) -> float:
    """Stop and assemble the array, and wait for the values; infinity if they do not come."""
    assemble_anew(array)
    knobs, began = tuple(by_name(name) for name in profile.knobs), time.monotonic()
    while time.monotonic() - began < LONGEST_S:
        if read_setting(array, knobs) == profile.knobs:
            return time.monotonic() - began
        time.sleep(0.01)
    return float("inf")


def assemble_anew(array: Array) -> None:
    devices = [f"/dev/{member.name}" for member in array.members]
    for command in (
        ("mdadm", "--stop", array.device),
        ("udevadm", "settle"),
        ("mdadm", "--assemble", array.device, *devices),
    ):
        subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
