"""The lab's processes and folder go when the lab goes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from autotune.errors import RefusalError
from autotune.lab import processes
from autotune.lab.processes import (
    Processes,
    require,
    require_memory,
    require_usable_folder,
)
from autotune.system import sysfs

# A process with a child, such as a user-mode kernel.
FAMILY = ("sh", "-c", "sleep 1000 & echo $! $$; wait")


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False


def soon(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 5
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.01)
    return condition()


def family(folder: Path) -> list[int]:
    log = folder / "log"
    assert soon(lambda: log.exists() and log.read_text().endswith("\n"))
    return [int(word) for word in log.read_text().split()]


def test_all_is_gone_when_the_lab_ends() -> None:
    with Processes() as running:
        running.start(FAMILY, log="log")
        pids = family(running.folder)
        assert all(alive(pid) for pid in pids)
        assert running.all_run()
    assert not running.folder.exists()
    assert soon(lambda: not any(alive(pid) for pid in pids))


def test_all_is_gone_when_the_lab_is_killed() -> None:
    source = f"""
from autotune.lab.processes import Processes
import time
running = Processes()
running.start({FAMILY!r}, log="log")
print(running.folder, flush=True)
time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as lab:
        assert lab.stdout
        folder = Path(lab.stdout.readline().strip())
        pids = family(folder)
        lab.send_signal(signal.SIGKILL)
    assert soon(lambda: not folder.exists())
    assert soon(lambda: not any(alive(pid) for pid in pids))


def test_nothing_stays_of_a_lab_that_is_killed_before_it_could_tell_its_keeper() -> None:
    folder = f"/{os.getpid()}-is-there"
    source = f"""
import os, signal
from types import SimpleNamespace
from autotune.lab.processes import Processes
running = Processes()
killed = SimpleNamespace(write=lambda _line: os.kill(os.getpid(), signal.SIGKILL))
keeper, running._keeper = running._keeper, SimpleNamespace(stdin=killed)
running.start(("tail", "-f", "/dev/null", {folder!r}), log="log")
"""
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == -signal.SIGKILL

    def left() -> bool:
        words = f"tail\0-f\0/dev/null\0{folder}"
        return any(words in sysfs.read_or(p, "") for p in Path("/proc").glob("[0-9]*/cmdline"))

    assert soon(lambda: not left())


def test_an_early_death_is_noticed() -> None:
    with Processes() as running:
        running.start(["false"], log="log")
        assert soon(lambda: not running.all_run())


def test_a_missing_program_is_refused_by_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "SYSTEM_PATH", os.devnull)
    with pytest.raises(RefusalError, match="apt-get install nbdkit user-mode-linux"):
        require(["nbdkit", "linux.uml"])


def test_disks_that_memory_has_no_room_for_are_refused(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")
    require_memory(4 << 30, meminfo)
    with pytest.raises(RefusalError, match=r"needs 16 GiB, and 4.0 GiB are available"):
        require_memory(16 << 30, meminfo)


@pytest.mark.parametrize(("most", "said"), [(8192, "8192"), (2048, "this user may open 2048")])
def test_the_lab_may_open_as_many_files_as_its_user(most: int, said: str) -> None:
    """In a process of its own, since a limit cannot be raised again."""
    script = f"""
import resource
from autotune.errors import RefusalError
from autotune.lab.processes import allow_many_files
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, {most}))
try:
    allow_many_files()
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except RefusalError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert said in done.stdout


def test_a_folder_that_the_lab_cannot_use_is_refused_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_usable_folder(tmp_path)
    (spaced := tmp_path / "my files").mkdir()
    with pytest.raises(RefusalError, match="has a space in its name; set TMPDIR"):
        require_usable_folder(spaced)
    monkeypatch.setattr(os, "statvfs", lambda _path: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(RefusalError, match="allows no programs"):
        require_usable_folder(tmp_path)
