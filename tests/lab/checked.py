"""What guest tests of checks share: checks in a process of their own, and members that differ."""

import json
import mmap
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest import mock

from guest import knob_files, read

from autotune.checking import check as check_module
from autotune.checking import obstacles, part, stored
from autotune.checking.record import CheckRecord
from autotune.cli.main import main
from autotune.system.array import find_array

MD = Path("/sys/block/md0/md")
PAGE = 4096
SECTORS_READ = 2
"""In /sys/block/NAME/stat (kernel Documentation/block/stat.rst)."""
SLACK_SECTORS = 4096
"""Of each member, what mdadm and a probe read besides."""
MEMBERS = ("vda", "vdb", "vdc")


def plant(member: str, sector: int, text: bytes = b"") -> None:
    """Write a page to a member behind md's back, past every cache."""
    page = mmap.mmap(-1, PAGE)
    page.write(text or os.urandom(PAGE))
    offset = (int(read(MD / f"dev-{member}/offset")) + sector) * 512
    device = os.open(f"/dev/{member}", os.O_WRONLY | os.O_DIRECT)
    try:
        assert os.pwrite(device, page, offset) == PAGE
    finally:
        os.close(device)


def mend(member: str, sector: int) -> None:
    """Nothing was ever written to the array."""
    plant(member, sector, bytes(PAGE))


def sectors_read(members: Iterable[str] = MEMBERS) -> list[int]:
    """What was read of each member's disk since it is there."""
    stats = (read(Path("/sys/block") / name / "stat").split() for name in members)
    return [int(words[SECTORS_READ]) for words in stats]


def size() -> int:
    """Sectors of each member."""
    return int(read(MD / "component_size")) * 2


def newest(state: Path) -> CheckRecord:
    """The newest check, as it is stored."""
    return stored.load(stored.path_of(state, find_array("/dev/md0").uuid)).checks[-1]


def position(state: Path) -> int:
    """How far it is, 0 before it is stored."""
    history = stored.load(stored.path_of(state, find_array("/dev/md0").uuid))
    return history.current.position if history.current else 0


def settings() -> dict[str, str]:
    """What a check may change."""
    names = ("sync_speed_min", "sync_speed_max", "sync_min", "sync_max", "sync_action")
    return {path: text for path, text in knob_files().items() if path.endswith(names)}


def start(state: Path, output: Path, *words: str, sensor: Path | None = None) -> int:
    """Fork a check that looks and stores often, since the guest takes seconds to start Python;
    return its process id. `sensor`: a file with the temperature of its first disk."""
    with output.open("w") as file:
        return start_on(file.fileno(), state, "--json", *words, sensor=sensor)


def start_on(descriptor: int, state: Path, *words: str, sensor: Path | None = None) -> int:
    """Likewise, with what it says going there."""
    child = os.fork()
    if child:
        return child
    code = 70

    def felt(*_: object) -> dict[str, float]:
        return {"vda": float(read(sensor))} if sensor else {}

    try:
        # What is asked for its size is the first of them that has one.
        for standard in (0, 1, 2):
            os.dup2(descriptor, standard)
        sys.stdout = os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False, buffering=1)
        os.setsid()
        said = ["autotune", "check", "/dev/md0", "--state-dir", str(state), *words]
        with (
            mock.patch.object(sys, "argv", said),
            mock.patch.object(part, "STORE_S", 1.0),
            mock.patch.object(part, "WARM_LOOK_S", 1.0),
            mock.patch.object(check_module, "LOOK_S", 0.5),
            mock.patch.object(obstacles, "temperatures", felt),
        ):
            main()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        os._exit(code)


def wait_for(text: str, output: Path, timeout_s: float = 120) -> None:
    """Wait until a check has said something."""
    deadline = time.monotonic() + timeout_s
    while text not in output.read_text():
        assert time.monotonic() < deadline, f"it did not say {text!r} but {output.read_text()}"
        time.sleep(0.05)


def ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def document(output: Path) -> dict[str, Any]:
    """The JSON at the end of what a check has printed."""
    text = output.read_text()
    found: dict[str, Any] = json.loads(text[text.index("\n{") if text[0] != "{" else 0 :])
    return found
