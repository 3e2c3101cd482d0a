"""Guards on two arrays of the same disks, and locks; on the lab `partitions.toml`, where
`test_run.py` runs this in this order."""

import ctypes
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from guest import autotune, read, wait_until
from guest_guard import documents, ended, foreground, start

from autotune.errors import RefusalError
from autotune.guard import feasibility
from autotune.safety.locks import lock
from autotune.safety.new_journal import new_journal
from autotune.safety.paths import journal_path
from autotune.system.array import find_array

ARRAYS = {"md0": 1, "md1": 2}
SIZE_MIB = 256
CEILING = ("--p99-ceiling", "500ms")
NEW_NAMESPACES = 0x20000 | 0x40000000  # of mounts and of the network
PRIVATE = 0x4000 | 0x40000
NOBODY = 65534
TAKEN = ExitStack()


def run(*words: str, text: str = "") -> None:
    done = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (words, done.stdout, done.stderr)


def md(name: str) -> Path:
    return Path("/sys/block") / name / "md"


def slow(disk: str, times: float) -> None:
    Path("/run/lab/disks", disk, "slowdown").write_text(f"{times}\n")


def replace(old: str, new: str) -> None:
    """Take a disk out of all arrays and put another one in its place."""
    for name, number in ARRAYS.items():
        run("mdadm", f"/dev/{name}", "--fail", f"/dev/{old}{number}")
        wait_until(lambda name=name: read(md(name) / "sync_action") == "idle")  # type: ignore[misc]
        run("mdadm", f"/dev/{name}", "--remove", f"/dev/{old}{number}")
    for name, number in ARRAYS.items():
        subprocess.run(["mdadm", "--zero-superblock", f"/dev/{new}{number}"], check=False)
        run("mdadm", f"/dev/{name}", "--add", f"/dev/{new}{number}")


def recovered() -> bool:
    return all(read(md(name) / "degraded") == "0" for name in ARRAYS)


@contextmanager
def forked(work: Callable[[], None]) -> Iterator[int]:
    """A process that does something and then waits to be ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            os.write(writing, b"x")
            signal.pause()
        finally:
            os._exit(1)
    os.close(writing)
    try:
        assert os.read(reading, 1) == b"x"
        yield child
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def take(name: str = "md0") -> None:
    """Lock an array as a run does, to the end of this process."""
    TAKEN.enter_context(lock(find_array(f"/dev/{name}")))


def enter_a_container() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.unshare(NEW_NAMESPACES) == 0
    assert libc.mount(b"none", b"/", None, PRIVATE, None) == 0
    number = Path("/dev/md0").stat().st_rdev
    for kind, where in ((b"sysfs", b"/sys"), (b"tmpfs", b"/run"), (b"tmpfs", b"/dev")):
        assert libc.mount(kind, where, kind, 0, None) == 0
    os.mknod("/dev/md0", 0o60600, number)


@pytest.fixture(scope="module", autouse=True)
def arrays() -> None:
    for disk in ("vda", "vdb", "vdc"):
        layout = f",{SIZE_MIB}MiB\n,{SIZE_MIB}MiB\n"
        run("sfdisk", "--quiet", f"/dev/{disk}", text=layout)
    for name, number in ARRAYS.items():
        members = [f"/dev/{disk}{number}" for disk in ("vda", "vdb")]
        options = ("--run", "--assume-clean", "--level=1", "--raid-devices=2", "--bitmap=none")
        run("mdadm", "--create", f"/dev/{name}", *options, *members)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_a_lock_is_one_for_a_machine_and_its_containers() -> None:
    def taken() -> None:
        enter_a_container()
        take()

    with forked(taken) as child:
        with pytest.raises(RefusalError, match=f"process {child} "):
            take()
        # Its disks too.
        with pytest.raises(RefusalError, match=r"the disk vd[ab] of /dev/md1"):
            take("md1")
    with forked(take):

        def refused() -> None:
            enter_a_container()
            with pytest.raises(RefusalError, match="Another run"):
                take()

        with forked(refused):
            pass


def test_nobody_can_hold_a_lock(state: Path) -> None:
    Path("/run/autotune").chmod(0o755)
    with lock(find_array("/dev/md0")):
        pass

    def open_nothing() -> None:
        folders = (Path("/run/autotune"), Path("/dev/autotune"))
        inside = [path for folder in folders for path in folder.iterdir()]
        assert len(inside) >= 6
        os.setuid(NOBODY)
        for path in (*folders, *inside):
            with pytest.raises(PermissionError):
                os.open(path, os.O_RDONLY)

    with forked(open_nothing):
        pass


def test_a_restore_says_who_is_in_its_way(state: Path) -> None:
    path = journal_path(state, find_array("/dev/md0").uuid)
    new_journal(path, "u", "/dev/md0", []).release()
    with subprocess.Popen(["flock", path, "cat"], stdin=subprocess.PIPE) as held:
        wait_until(lambda: f" {held.pid} " in Path("/proc/locks").read_text(), what="flock")
        done = autotune("restore", state=state)
        assert done.returncode == 1
        assert f"process {held.pid} (flock /" in done.stderr
        assert path.exists()
    assert autotune("restore", state=state).returncode == 0
    assert not path.exists()


def test_all_that_one_new_disk_sets_off_is_guarded(state: Path, tmp_path: Path) -> None:
    outputs = {name: tmp_path / name for name in ARRAYS}
    guards = [
        start(state, output, *CEILING, "--wait", device=f"/dev/{name}")
        for name, output in outputs.items()
    ]
    slow("vdc", 10)
    replace("vdb", "vdc")
    wait_until(recovered, 240, "both recoveries")
    slow("vdc", 1)
    wait_until(lambda: all("summary" in out.read_text() for out in outputs.values()), 60)
    for child in guards:
        os.kill(child, signal.SIGTERM)
        assert ended(child) == 0
    for name, output in outputs.items():
        (summary,) = (each for each in documents(output) if each["kind"] == "summary")
        assert summary["ended"] == "the recovery is over", name
        assert int(str(summary["synced_bytes"])) > 0.6 * (SIZE_MIB << 20), name
        assert "Traceback" not in output.read_text()
        assert "Another run" not in output.read_text()


def test_a_recovery_that_a_run_has_kept_from_its_guard_is_guarded_from_then_on(
    state: Path, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    child = start(state, output, *CEILING, "--wait")
    slow("vdb", 20)
    slow("vda", 20)
    with forked(take):
        (md("md0") / "sync_action").write_text("check")
        wait_until(lambda: "Another run" in output.read_text(), 30, "the guard to be refused")
        replace("vdc", "vdb")
        wait_until(lambda: "/" in read(md("md0") / "sync_completed"), 60, "the recovery")
    wait_until(lambda: "window" in output.read_text(), 20, "the guard")
    # One that is told to end does, though the sync goes on.
    os.kill(child, signal.SIGTERM)
    assert ended(child) == 0
    assert documents(output)[-1]["ended"] == "stopped by SIGTERM"
    assert read(md("md0") / "sync_action") == "recover"
    # It is asked each second. A run that dies lets go of the array before it does of the disks.
    refused = [line for line in output.read_text().splitlines() if "Another run" in line]
    assert len(refused) == len(set(refused)) <= 2, refused


@pytest.mark.slow
def test_a_ceiling_out_of_reach_does_not_keep_an_array_degraded(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the recovery that the test before has begun."""
    monkeypatch.setattr(feasibility, "VAIN_S", 15.0)
    output, config, told = (tmp_path / name for name in ("output", "config.toml", "told"))
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ncat > {told}\n")
    hook.chmod(0o755)
    config.write_text(
        f"[notify]\ncommand = ['{hook}']\n[metrics]\ntextfile = '{tmp_path}/all.prom'\n"
    )
    assert read(md("md0") / "sync_action") == "recover"
    with foreground():
        child = start(state, output, "--p99-ceiling", "100us", "--config", str(config))
        assert ended(child) == 0, output.read_text()
        assert read(md("md0") / "degraded") == "1"
    *windows, summary = documents(output)
    assert summary["released"] is True
    assert windows[-1]["out_of_reach"] is True
    assert output.read_text().count("since the array lacks redundancy") == 1
    assert read(md("md0") / "sync_speed_max").endswith("(system)")
    assert json.loads(told.read_text())["event"] == "unheld"
    metrics = (tmp_path / "all-guard-md0.prom").read_text()
    assert "ceiling_out_of_reach" in metrics
    assert not list((state / "journal").glob("*"))
    for disk in ("vda", "vdb"):
        slow(disk, 1)
    wait_until(recovered, 120, "both recoveries")
