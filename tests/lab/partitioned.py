"""Arrays on partitions of the same disks, the commonest layout there is; in `neighbours.toml`."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from guest import read, wait_until

LETTERS = "abcde"


def mdadm(*words: str) -> None:
    subprocess.run(["mdadm", *words], check=True, capture_output=True)


def partition_disks(mib: int) -> None:
    """Two partitions on each disk, the first one of `mib`."""
    for letter in LETTERS:
        text = f"size={mib}M\n,\n"
        subprocess.run(["sfdisk", "-q", f"/dev/vd{letter}"], input=text, text=True, check=True)


def parts(number: int, letters: str) -> list[str]:
    return [f"/dev/vd{letter}{number}" for letter in letters]


def clear() -> None:
    """No array is there, and no disk is slow or knows of one."""
    for folder in Path("/sys/block").glob("md*"):
        wait_until(lambda name=folder.name: stopped(name), 60, f"{folder.name} to stop")
    for letter in LETTERS:
        slow_down(letter, 1)
        for number in (1, 2):
            words = ["mdadm", "--zero-superblock", f"/dev/vd{letter}{number}"]
            subprocess.run(words, check=False, capture_output=True)
        # What a run left there after a failure, the next test would take for its own.
        Path(f"/sys/block/vd{letter}/queue/scheduler").write_text("mq-deadline")


def stopped(name: str) -> bool:
    words = ["mdadm", "--stop", f"/dev/{name}"]
    return not subprocess.run(words, check=False, capture_output=True).returncode


def create(name: str, level: int, devices: Sequence[str], *more: str) -> None:
    """An array that counts as synced."""
    words = ("--run", f"--level={level}", f"--raid-devices={len(devices)}", "--assume-clean")
    mdadm("--create", f"/dev/{name}", *words, *more, *devices)


def slow_down(letter: str, times: float) -> None:
    Path(f"/run/lab/disks/vd{letter}/slowdown").write_text(f"{times}\n")


def md(name: str) -> Path:
    return Path("/sys/block") / name / "md"


def wait_idle(name: str, timeout_s: float = 120) -> None:
    wait_until(lambda: read(md(name) / "sync_action") == "idle", timeout_s, f"{name} to be idle")
