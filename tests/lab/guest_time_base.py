"""Why the bitmap's `time_base` is not tuned, on raid1-hdd; `test_run.py` runs this there."""

import subprocess
from pathlib import Path

from guest import read

from autotune.system.array import find_array

BASE = Path("/sys/block/md0/md/bitmap/time_base")


def run(*words: str) -> bool:
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    print(*words, done.returncode, done.stdout, done.stderr)
    return done.returncode == 0


def test_it_outlives_the_array_and_a_small_one_ends_it() -> None:
    members = [f"/dev/{member.name}" for member in find_array("md0").members]
    assert run("umount", "/mnt/md0")
    assert read(BASE) == "5"
    for text, there in (("7", True), ("0.5", False)):
        BASE.write_text(text)
        assert read(BASE).rstrip("0") == text
        assert run("mdadm", "--stop", "/dev/md0")
        assert run("mdadm", "--assemble", "/dev/md0", *members) is there
        if there:
            assert read(BASE) == text, "the kernel has not forgotten it"
    run("dmesg")
